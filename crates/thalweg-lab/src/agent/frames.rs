//! Frames on a stream: four bytes of length, most significant first, and so many bytes.

use std::fmt;

/// Takes a stream apart into frames, whatever pieces it comes in.
#[derive(Debug)]
pub struct Frames {
    most: usize,
    /// Bytes that were not handed on yet.
    pending: Vec<u8>,
}

/// Why a stream cannot be taken apart any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// A frame is announced that is longer than allowed.
    TooLong {
        /// Bytes announced.
        announced: usize,
        /// Bytes allowed.
        most: usize,
    },
    /// A frame of no bytes.
    Empty,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::TooLong { announced, most } => {
                write!(f, "a message of {announced} bytes was announced, and {most} are allowed")
            }
            FrameError::Empty => f.write_str("an empty message came"),
        }
    }
}

impl Frames {
    /// Takes frames of up to `most` bytes.
    pub fn new(most: usize) -> Frames {
        Frames { most, pending: Vec::new() }
    }

    /// Takes frames of up to `most` bytes from now on.
    pub fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// Adds received bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next frame that is whole.
    ///
    /// # Errors
    /// The stream cannot be parsed any further; the next call fails as well.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let Some((length, rest)) = self.pending.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let announced = u32::from_be_bytes(*length) as usize;
        match announced {
            0 => Err(FrameError::Empty),
            _ if announced > self.most => Err(FrameError::TooLong { announced, most: self.most }),
            _ if rest.len() < announced => Ok(None),
            _ => {
                let frame = rest[..announced].to_vec();
                self.pending.drain(..LENGTH_BYTES + announced);
                Ok(Some(frame))
            }
        }
    }

    /// Bytes that wait for the rest of their frame.
    pub fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// `content` as a frame; `None` where it is empty or longer than `most`.
    pub fn pack(content: &[u8], most: usize) -> Option<Vec<u8>> {
        let length = u32::try_from(content.len()).ok().filter(|_| (1..=most).contains(&content.len()))?;
        Some([&length.to_be_bytes()[..], content].concat())
    }
}

const LENGTH_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, FrameError> {
        let mut frames = Frames::new(8);
        let mut out = Vec::new();
        for piece in pieces {
            frames.add(piece);
            while let Some(frame) = frames.take()? {
                out.push(frame);
            }
        }
        Ok(out)
    }

    #[test]
    fn a_stream_is_the_same_in_any_pieces() {
        let stream = [Frames::pack(b"one", 8), Frames::pack(b"eightone", 8)].map(|one| one.expect("packed")).concat();
        let expect = Ok(vec![b"one".to_vec(), b"eightone".to_vec()]);
        for cut in 0..=stream.len() {
            assert_eq!(frames(&[&stream[..cut], &stream[cut..]]), expect, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(frames(&bytes), expect);
    }

    #[test]
    fn what_is_too_long_or_empty_is_refused_before_it_comes() {
        assert_eq!(frames(&[&[0, 0, 0, 9]]), Err(FrameError::TooLong { announced: 9, most: 8 }));
        assert_eq!(
            frames(&[&[255, 255, 255, 255]]),
            Err(FrameError::TooLong { announced: u32::MAX as usize, most: 8 })
        );
        assert_eq!(frames(&[&[0, 0, 0, 0]]), Err(FrameError::Empty));
        assert_eq!((Frames::pack(b"", 8), Frames::pack(b"ninebytes", 8)), (None, None));
    }
}
