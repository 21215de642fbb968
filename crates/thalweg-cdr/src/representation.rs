//! The encodings of a payload, and the encapsulation header of four bytes that names one of them.

/// The two generations of the encoding (DDS-XTypes 1.3 §7.4; DATA_REPRESENTATION ids 0 and 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Representation {
    /// XCDR version 1: PLAIN_CDR, and PL_CDR for mutable types. ROS 2 sends it; numbers align to their size, up to 8.
    Xcdr1,
    /// XCDR version 2: PLAIN_CDR2, DELIMITED_CDR2 and PL_CDR2. Numbers align to their size, up to 4.
    Xcdr2,
}

impl Representation {
    /// The largest alignment that the encoding knows, in bytes: an 8-byte number aligns to 8 or to 4.
    pub const fn max_alignment(self) -> usize {
        match self {
            Representation::Xcdr1 => 8,
            Representation::Xcdr2 => 4,
        }
    }
}

/// Permitted differences between two versions of a type that exchange data (DDS-XTypes 1.3 §7.2.2.4.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extensibility {
    /// Both sides have the same members; nothing is added to the values.
    Final,
    /// Members may be added at the end; XCDR2 writes the length of the whole in front.
    Appendable,
    /// Members may be added, removed and reordered; each carries its id and length.
    Mutable,
}

/// Which end of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// The least significant byte first; what Thalweg sends.
    Little,
    /// The most significant byte first; what key hashes are made of.
    Big,
}

impl ByteOrder {
    /// The order of this machine.
    pub const NATIVE: ByteOrder = if cfg!(target_endian = "little") { ByteOrder::Little } else { ByteOrder::Big };
}

/// The content of a payload's encapsulation header (RTPS 2.5 §10.2, DDS-XTypes 1.3 §7.6.3.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encapsulation {
    /// The generation of the encoding.
    pub representation: Representation,
    /// The framing of the outermost type; with XCDR1, final and appendable types look alike and are both `Final` here.
    pub extensibility: Extensibility,
    /// The byte order of the body. The header itself is always big-endian.
    pub byte_order: ByteOrder,
}

/// The length of the encapsulation header: the id and the options, two bytes each.
pub const ENCAPSULATION_BYTES: usize = 4;

impl Encapsulation {
    /// The encapsulation of a type of this extensibility.
    pub const fn new(representation: Representation, extensibility: Extensibility, byte_order: ByteOrder) -> Self {
        Encapsulation { representation, extensibility, byte_order }
    }

    /// The id that is sent: 0x0000–0x0003 for XCDR1, 0x0006–0x000b for XCDR2.
    pub const fn id(self) -> u16 {
        let big_endian_id = match (self.representation, self.extensibility) {
            (Representation::Xcdr1, Extensibility::Final | Extensibility::Appendable) => 0x0000,
            (Representation::Xcdr1, Extensibility::Mutable) => 0x0002,
            (Representation::Xcdr2, Extensibility::Final) => 0x0006,
            (Representation::Xcdr2, Extensibility::Appendable) => 0x0008,
            (Representation::Xcdr2, Extensibility::Mutable) => 0x000a,
        };
        match self.byte_order {
            ByteOrder::Big => big_endian_id,
            ByteOrder::Little => big_endian_id | 1,
        }
    }

    /// The meaning of a received id; `None` for XML and for unassigned ids.
    ///
    /// 0x0010–0x0015 are the ids of the table in DDS-XTypes; the field uses those of RTPS, so both are accepted.
    pub const fn from_id(id: u16) -> Option<Self> {
        let (representation, extensibility) = match id & !1 {
            0x0000 => (Representation::Xcdr1, Extensibility::Final),
            0x0002 => (Representation::Xcdr1, Extensibility::Mutable),
            0x0006 | 0x0010 => (Representation::Xcdr2, Extensibility::Final),
            0x0008 | 0x0014 => (Representation::Xcdr2, Extensibility::Appendable),
            0x000a | 0x0012 => (Representation::Xcdr2, Extensibility::Mutable),
            _ => return None,
        };
        let byte_order = if id & 1 == 1 { ByteOrder::Little } else { ByteOrder::Big };
        Some(Encapsulation { representation, extensibility, byte_order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_the_encapsulation_that_it_is_made_from() {
        for id in [0x0000, 0x0001, 0x0002, 0x0003, 0x0006, 0x0007, 0x0008, 0x0009, 0x000a, 0x000b] {
            assert_eq!(Encapsulation::from_id(id).map(Encapsulation::id), Some(id), "id {id:#06x}");
        }
    }

    #[test]
    fn the_ids_of_the_xtypes_table_are_understood() {
        for (id, sent) in [(0x10, 0x6), (0x11, 0x7), (0x12, 0xa), (0x13, 0xb), (0x14, 0x8), (0x15, 0x9)] {
            assert_eq!(Encapsulation::from_id(id).map(Encapsulation::id), Some(sent), "id {id:#06x}");
        }
    }

    #[test]
    fn xml_and_unassigned_ids_are_not_guessed() {
        for id in [0x0004, 0x0005, 0x000c, 0x0016, 0x0100, 0xffff] {
            assert_eq!(Encapsulation::from_id(id), None, "id {id:#06x}");
        }
    }
}
