//! Well-known UDP ports of a domain (RTPS 2.5 §9.6.2.3, with its default constants).

/// Highest domain whose ports all fit below 65,536 together with [`PARTICIPANT_INDEX_MAX`].
pub const DOMAIN_MAX: u32 = 232;

/// Highest participant index whose well-known ports are tried and, at unicast peers, announced to. Chosen by the
/// design: 33 participants on a host are found without multicast; further ones use free ports and multicast.
pub const PARTICIPANT_INDEX_MAX: u32 = 32;

const BASE: u32 = 7400;
const PER_DOMAIN: u32 = 250;
const PER_PARTICIPANT: u32 = 2;

/// Port at which participants announce themselves by multicast.
///
/// # Panics
/// When `domain` is above [`DOMAIN_MAX`].
pub fn metatraffic_multicast(domain: u32) -> u16 {
    port(domain, 0)
}

/// Port of user data by multicast.
///
/// # Panics
/// As [`metatraffic_multicast`].
pub fn user_multicast(domain: u32) -> u16 {
    port(domain, 1)
}

/// Port at which participant number `index` of a host listens for discovery.
///
/// # Panics
/// As [`metatraffic_multicast`].
pub fn metatraffic_unicast(domain: u32, index: u32) -> u16 {
    port(domain, 10 + PER_PARTICIPANT * index)
}

/// Port at which participant number `index` of a host listens for user data.
///
/// # Panics
/// As [`metatraffic_multicast`].
pub fn user_unicast(domain: u32, index: u32) -> u16 {
    port(domain, 11 + PER_PARTICIPANT * index)
}

fn port(domain: u32, offset: u32) -> u16 {
    let port = BASE.saturating_add(PER_DOMAIN.saturating_mul(domain)).saturating_add(offset);
    u16::try_from(port).expect("the domain id was checked against DOMAIN_MAX")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_follow_the_specification() {
        assert_eq!(metatraffic_multicast(0), 7400);
        assert_eq!(user_multicast(0), 7401);
        assert_eq!(metatraffic_unicast(0, 0), 7410);
        assert_eq!(user_unicast(1, 3), 7667);
        assert_eq!(user_unicast(DOMAIN_MAX, PARTICIPANT_INDEX_MAX), 65_475);
    }
}
