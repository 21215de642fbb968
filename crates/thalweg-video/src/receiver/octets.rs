//! The octets of a frame, wherever they came to lie.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use thalweg_base::payload::Payload;

/// The octets of a frame, on loan: of the buffer that its parts were put into, or of the sample that it came in. Let go of
/// them to have the memory used again.
#[derive(Clone)]
pub struct PictureOctets(Held);

#[derive(Clone)]
enum Held {
    Assembled(Arc<[u8]>),
    Sample(Payload),
}

impl PictureOctets {
    /// The part `range` of a sample, where it lies.
    pub(crate) fn of_sample(sample: &Payload, range: Range<usize>) -> PictureOctets {
        PictureOctets(Held::Sample(sample.slice(range)))
    }
}

impl Deref for PictureOctets {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Assembled(octets) => octets,
            Held::Sample(payload) => payload,
        }
    }
}

impl From<Arc<[u8]>> for PictureOctets {
    fn from(octets: Arc<[u8]>) -> PictureOctets {
        PictureOctets(Held::Assembled(octets))
    }
}

impl From<Vec<u8>> for PictureOctets {
    fn from(octets: Vec<u8>) -> PictureOctets {
        PictureOctets(Held::Assembled(octets.into()))
    }
}

impl fmt::Debug for PictureOctets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PictureOctets({})", self.len())
    }
}
