//! The headers of members: parameters of XCDR1 and EMHEADERs of XCDR2 (DDS-XTypes 1.3 §7.4.1.2, §7.4.3.4.2).

use crate::encoder::{
    EMHEADER_MUST_UNDERSTAND, EXTENDED_LENGTH, EXTENDED_MUST_UNDERSTAND, FLAG_MUST_UNDERSTAND, PID_EXTENDED,
    PID_LIST_END, PID_SENTINEL,
};
use crate::{DecodeError, Decoder};

/// The header of a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter {
    id: u32,
    must_understand: bool,
    length: usize,
    /// Whether it is an extended header of XCDR1.
    is_extended: bool,
}

impl Decoder<'_> {
    pub(super) fn read_parameter(
        &mut self,
        parameter: Parameter,
        read: &mut impl FnMut(&mut Self, u32) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        let known = self.confined(parameter.length, |decoder| read(decoder, parameter.id))?;
        if !known && parameter.must_understand {
            return Err(self.error(format!("no member {} that must be understood before here", parameter.id)));
        }
        Ok(())
    }

    pub(super) fn parameter_xcdr2(&mut self) -> Result<Option<Parameter>, DecodeError> {
        self.align(4);
        if self.is_at_end() {
            return Ok(None);
        }
        let header = u32::from_ne_bytes(self.number("a member header")?);
        let length = match header >> 28 & 7 {
            code @ 0..=3 => 1 << code,
            4 => u32::from_ne_bytes(self.number("a member's length")?) as usize,
            code => {
                let count = u32::from_ne_bytes(self.clone().number("a member's length")?) as usize;
                let element_bytes = [1, 4, 8][code as usize - 5];
                count.checked_mul(element_bytes).and_then(|bytes| bytes.checked_add(4)).unwrap_or(usize::MAX)
            }
        };
        let must_understand = header & EMHEADER_MUST_UNDERSTAND != 0;
        Ok(Some(Parameter { id: header & MEMBER_ID_MASK, must_understand, length, is_extended: false }))
    }

    /// The next parameter; `None` at the end of the list.
    pub(super) fn parameter_xcdr1(&mut self) -> Result<Option<Parameter>, DecodeError> {
        loop {
            let parameter = self.parameter_header_xcdr1()?;
            match parameter.id {
                PARAMETER_LIST_END => return Ok(None),
                // The end of lists in RTPS. A member 1 of size 0 has an extended header.
                PARAMETER_SENTINEL if parameter.length == 0 && !parameter.is_extended => return Ok(None),
                PARAMETER_IGNORE => self.confined(parameter.length, |_| Ok(()))?,
                _ => return Ok(Some(parameter)),
            }
        }
    }

    fn parameter_header_xcdr1(&mut self) -> Result<Parameter, DecodeError> {
        self.align(4);
        let at = self.position;
        let id = u16::from_ne_bytes(self.number("a parameter id")?);
        let length = u16::from_ne_bytes(self.number("a parameter's length")?);
        if id & PID_MASK != PID_EXTENDED {
            let must_understand = id & FLAG_MUST_UNDERSTAND != 0;
            let id = match id & (PID_MASK | FLAG_OF_VENDOR) {
                id @ FIRST_RESERVED_PID.. => u32::from(id) | OUTSIDE_MEMBER_IDS,
                id => u32::from(id),
            };
            return Ok(Parameter { id, must_understand, length: usize::from(length), is_extended: false });
        }
        if length != EXTENDED_LENGTH {
            return Err(DecodeError::new(at + 2, "8, the length of an extended parameter header"));
        }
        let id = u32::from_ne_bytes(self.number("a member id")?);
        let length = u32::from_ne_bytes(self.number("a parameter's length")?) as usize;
        let must_understand = id & EXTENDED_MUST_UNDERSTAND != 0;
        Ok(Parameter { id: id & (MEMBER_ID_MASK | OUTSIDE_MEMBER_IDS), must_understand, length, is_extended: true })
    }

    pub(super) fn optional_xcdr1<T>(
        &mut self,
        id: u32,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        self.align(4);
        let at = self.position;
        let parameter = self.parameter_header_xcdr1()?;
        if parameter.id != id {
            return Err(DecodeError::new(at, format!("the parameter header of optional member {id}")));
        }
        if parameter.length == 0 {
            return Ok(None);
        }
        let outer = std::mem::replace(&mut self.origin, self.position);
        let value = self.confined(parameter.length, read)?;
        self.origin = outer;
        Ok(Some(value))
    }
}

const MEMBER_ID_MASK: u32 = 0x0fff_ffff;
const PID_MASK: u16 = 0x3fff;
const FLAG_OF_VENDOR: u16 = 0x8000;
/// Marks the parameter ids that no member can have: a vendor's own, and the reserved ones.
const OUTSIDE_MEMBER_IDS: u32 = 0x8000_0000;
const FIRST_RESERVED_PID: u16 = 0x3f00;
const PARAMETER_LIST_END: u32 = PID_LIST_END as u32 | OUTSIDE_MEMBER_IDS;
const PARAMETER_IGNORE: u32 = 0x3f03 | OUTSIDE_MEMBER_IDS;
const PARAMETER_SENTINEL: u32 = PID_SENTINEL as u32;
