//! TRANSPORT_PRIORITY as the network understands it.

/// The class of a writer's datagrams in the network: a code point of Differentiated Services (RFC 2474 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficClass(u8);

impl TrafficClass {
    /// The class of unmarked datagrams: best effort.
    pub const DEFAULT: TrafficClass = TrafficClass(0);
    /// Less than best effort (RFC 8622): the network serves it when nothing else waits.
    pub const LOWER_EFFORT: TrafficClass = TrafficClass(1);
    /// The highest code point, and thus the highest TRANSPORT_PRIORITY.
    pub const CODE_POINT_MAX: u8 = 63;

    /// The class of a writer with this TRANSPORT_PRIORITY: 0 to 63 is the code point itself (46: expedited forwarding,
    /// RFC 3246; 34: AF41), a negative number [`TrafficClass::LOWER_EFFORT`]. Larger ones, which `WriterQos::check` refuses,
    /// count as 63.
    pub fn of(transport_priority: i32) -> TrafficClass {
        match u8::try_from(transport_priority) {
            Ok(code_point) => TrafficClass(code_point.min(TrafficClass::CODE_POINT_MAX)),
            Err(_) if transport_priority < 0 => TrafficClass::LOWER_EFFORT,
            Err(_) => TrafficClass(TrafficClass::CODE_POINT_MAX),
        }
    }

    /// The code point, 0 to 63; the upper six bits of the TOS octet of IPv4 and the traffic class octet of IPv6.
    pub fn code_point(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_code_points() {
        let of = |priority| TrafficClass::of(priority).code_point();
        assert_eq!([0, 1, 46, 63].map(of), [0, 1, 46, 63]);
        assert_eq!([-1, i32::MIN, 64, 255, 256, i32::MAX].map(of), [1, 1, 63, 63, 63, 63]);
        assert_eq!(TrafficClass::default(), TrafficClass::DEFAULT);
    }
}
