//! Options of a message for the endpoint itself, read in one pass.

use std::hash::{BuildHasher, Hasher};

use super::secret::TableState;
use crate::message::{Block, Code, Observe, OptionNumber, Options, parse_uint};

/// The part of a request that the endpoint itself needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub observe: Option<Observe>,
    pub block1: Option<Block>,
    pub block2: Option<Block>,
    pub size1: Option<u32>,
    /// Classes of responses that the client does not want: bit 1 for class 2, 3 for 4, 4 for 5 (RFC 7967 §2.1).
    pub no_response: Option<u8>,
    pub echo: Option<u64>,
    /// Whether the client takes this endpoint for a proxy.
    pub is_for_proxy: bool,
    /// The first critical option that is not understood but safe to forward: only a proxy may go on with it.
    pub unread: Option<OptionNumber>,
    /// Equal for requests for the same representation, or for its blocks.
    pub representation: u64,
    /// Tells apart FETCH requests by their payload; 0 for one that has none, and for other methods.
    pub payload: u64,
}

/// Why the options cannot be obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionRefusal {
    /// A critical option that is not known, has a wrong form, or occurs too often.
    BadOption(OptionNumber),
    /// A value that must be answered with 4.00, and why.
    BadRequest(&'static str),
}

impl OptionRefusal {
    /// The option that is not understood.
    pub fn number(self) -> Option<OptionNumber> {
        match self {
            OptionRefusal::BadOption(number) => Some(number),
            OptionRefusal::BadRequest(_) => None,
        }
    }
}

impl Asked {
    /// Reads the options of a request. Critical ones that are not understood but safe to forward are no error in a request
    /// that names another server, or where `forwarding` leaves them to the driver (RFC 7252 §5.7.1).
    #[inline]
    pub fn read(
        code: Code,
        options: Options<'_>,
        table: &TableState,
        forwarding: bool,
    ) -> Result<Asked, OptionRefusal> {
        let mut asked = Asked::default();
        let mut hasher = table.build_hasher();
        hasher.write_u64(u64::from(code.byte()));
        let mut last = OptionNumber(0);
        for (number, value) in options {
            let is_repeated = number == last && !number.is_repeatable();
            last = number;
            if is_repeated || !number.accepts(value) || number == OptionNumber::OSCORE {
                if number.is_critical() {
                    let first = *asked.unread.get_or_insert(number);
                    if number.is_unsafe() {
                        return Err(OptionRefusal::BadOption(first));
                    }
                }
                // An elective one is ignored (RFC 7252 §5.4.1), but tells requests apart all the same (§5.6).
                if number.is_no_cache_key() {
                    continue;
                }
            } else if asked.obey(number, value).map_err(|error| asked.unread.map_or(error, OptionRefusal::BadOption))? {
                continue;
            }
            hasher.write_u64(u64::from(number.0) << 32 | value.len() as u64);
            hasher.write(value);
        }
        asked.representation = hasher.finish();
        match asked.unread.filter(|_| !forwarding && !asked.is_for_proxy) {
            Some(number) => Err(OptionRefusal::BadOption(number)),
            None => Ok(asked),
        }
    }

    /// Whether a request with this code changes nothing, so that its duplicate may be answered anew. A block of its body changes
    /// what was received of it; a further block of the response is read only.
    pub fn is_repeatable(&self, code: Code) -> bool {
        (code.is_safe() && self.block1.is_none()) || self.wants_further_block()
    }

    /// Whether a request with this code must not run again: its effect would be another. The blocks before the last one do not
    /// run.
    pub fn runs_once(&self, code: Code) -> bool {
        matches!(code, Code::POST | Code::PATCH)
            && self.block1.is_none_or(|block| !block.more)
            && !self.wants_further_block()
    }

    /// Whether the client has the first block of the response and wants another one.
    pub fn wants_further_block(&self) -> bool {
        self.block2.is_some_and(|block| block.number > 0) && self.block1.is_none()
    }

    /// Records an option for the endpoint; false for one that describes the representation.
    #[inline]
    fn obey(&mut self, number: OptionNumber, value: &[u8]) -> Result<bool, OptionRefusal> {
        match number {
            OptionNumber::URI_PATH | OptionNumber::URI_QUERY => return Ok(false),
            OptionNumber::OBSERVE => {
                self.observe = match parse_uint(value) {
                    Some(0) => Some(Observe::Register),
                    Some(1) => Some(Observe::Deregister),
                    _ => None,
                }
            }
            OptionNumber::BLOCK1 => self.block1 = Some(block(value)?),
            OptionNumber::BLOCK2 => self.block2 = Some(block(value)?),
            OptionNumber::SIZE1 => self.size1 = parse_uint(value),
            OptionNumber::NO_RESPONSE => self.no_response = Some(value.first().copied().unwrap_or(0)),
            OptionNumber::ECHO => self.echo = value.try_into().ok().map(u64::from_be_bytes),
            OptionNumber::PROXY_URI | OptionNumber::PROXY_SCHEME => {
                self.is_for_proxy = true;
                return Ok(false);
            }
            OptionNumber::ETAG => {}
            _ => return Ok(number.is_no_cache_key()),
        }
        Ok(true)
    }
}

/// A block; its length was checked, so only the reserved size is left to refuse (RFC 7959 §2.2).
fn block(value: &[u8]) -> Result<Block, OptionRefusal> {
    Block::parse(value).ok_or(OptionRefusal::BadRequest("the size exponent 7 is reserved"))
}

/// The first option for which a response must be refused: a critical one that is not understood (RFC 7252 §5.4.1), or, if the
/// request was `forwarded`, one that is not understood and not safe to forward (§5.7.1).
pub fn refused_option(options: Options<'_>, forwarded: bool) -> Option<OptionNumber> {
    let is_refused = |number: OptionNumber| if forwarded { number.is_unsafe() } else { number.is_critical() };
    options.not_understood().map(|(number, _)| number).find(|number| is_refused(*number))
}
