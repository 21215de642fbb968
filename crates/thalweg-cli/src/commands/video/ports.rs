//! The ports of picture, sound and RTCP, which have to be different.

use std::net::SocketAddr;

use thalweg_video::io::ControlPort;

use crate::outcome::Failure;

/// The port of RTCP of sound beside a picture: a number is the picture's alone, and the sound has the next one to its own.
pub fn sound_control(picture: ControlPort) -> ControlPort {
    match picture {
        ControlPort::At(_) => ControlPort::Next,
        ControlPort::Next | ControlPort::Multiplexed => picture,
    }
}

/// Refuses a picture, with its sound if there is one, of which two of RTP and RTCP would have one port.
///
/// # Errors
/// They would, or no port is left for RTCP.
pub fn refuse_shared(
    picture: (&[SocketAddr], ControlPort),
    sound: Option<(&[SocketAddr], ControlPort)>,
) -> Result<(), Failure> {
    let mut taken: Vec<(String, SocketAddr)> = Vec::new();
    let streams = [("the picture", picture)].into_iter().chain(sound.map(|sound| ("the sound", sound)));
    for (name, (addresses, control)) in streams {
        for (place, address) in addresses.iter().enumerate() {
            // Whoever names an address twice wants each packet twice there; the system chooses ports for 0.
            if addresses[..place].contains(address) || address.port() == 0 {
                continue;
            }
            let beside = control.beside(*address).map_err(|error| Failure::Usage(error.to_string()))?;
            let beside = (control != ControlPort::Multiplexed).then(|| (format!("RTCP of {name}"), beside));
            for claim in [(name.to_owned(), *address)].into_iter().chain(beside) {
                match taken.iter().find(|(_, other)| collide(claim.1, *other)) {
                    Some((other, address)) => return Err(shared(other, &claim.0, *address)),
                    None => taken.push(claim),
                }
            }
        }
    }
    Ok(())
}

fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let scope = |address: SocketAddr| match address {
        SocketAddr::V6(address) => address.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    // A link-local address is another one on each interface; 0 names none.
    let shares_scope = scope(one) == scope(other) || scope(one) == 0 || scope(other) == 0;
    let covers = (one.ip() == other.ip() && shares_scope) || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && one.is_ipv4() == other.is_ipv4() && covers
}

fn shared(one: &str, other: &str, address: SocketAddr) -> Failure {
    let both = if one == other { format!("{one}, of both paths,") } else { format!("{one} and {other}") };
    Failure::Usage(format!("{both} would share {address}; give --rtcp mux, or other ports"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_of_two_interfaces_are_two() {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let [first, second, anywhere] = ["[fe80::1%1]:5000", "[fe80::1%2]:5000", "[::]:5000"].map(address);
        let check = |picture: &[SocketAddr], sound: &[SocketAddr]| {
            refuse_shared((picture, ControlPort::Next), Some((sound, ControlPort::Next))).is_ok()
        };
        let apart = address("[fe80::1%1]:6000");
        assert!(check(&[first, second], &[apart]), "two paths");
        assert!(check(&[first], &[second]));
        assert!(!check(&[first], &[first]) && !check(&[first], &[anywhere]) && !check(&[anywhere], &[second]));
        assert!(!check(&[address("[fe80::1]:5000")], &[second]), "over any interface");
    }
}
