//! How much a WebSocket holds of a message that has not arrived whole: tungstenite does not tell (RFC 6455 §5.2).

/// Follows the frames of one direction; looks at no content.
#[derive(Debug)]
pub(super) struct Unfinished {
    /// What has arrived of the header of a frame.
    header: [u8; HEADER_MAX],
    header_len: usize,
    frame: Option<Frame>,
    /// Bytes of the frames before this one of the same message; `None` between messages.
    message: Option<usize>,
    /// The longest frame that is taken.
    frame_max: usize,
}

/// A frame whose header has arrived.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Room is made for all of it at once.
    bytes: usize,
    missing: u64,
    is_last: bool,
    is_control: bool,
}

impl Unfinished {
    /// No frame yet; longer ones than this end the connection.
    pub(super) fn new(frame_max: usize) -> Unfinished {
        Unfinished { header: [0; HEADER_MAX], header_len: 0, frame: None, message: None, frame_max }
    }

    /// Bytes that are held for frames and messages which are not whole; 0 when there is none.
    pub(super) fn bytes(&self) -> usize {
        self.header_len + self.frame.map_or(0, |frame| frame.bytes) + self.message.unwrap_or(0)
    }

    /// Takes bytes that have arrived.
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            if let Some(frame) = &mut self.frame {
                let count = usize::try_from(frame.missing).map_or(bytes.len(), |missing| missing.min(bytes.len()));
                frame.missing -= count as u64;
                bytes = &bytes[count..];
            } else {
                self.header[self.header_len] = *first;
                self.header_len += 1;
                self.frame = Frame::parse(&self.header[..self.header_len], self.frame_max);
                bytes = rest;
            }
            if let Some(frame) = self.frame.take_if(|frame| frame.missing == 0) {
                self.end(frame);
            }
        }
    }

    /// All of a frame has arrived.
    fn end(&mut self, frame: Frame) {
        let header = std::mem::take(&mut self.header_len);
        // A control may stand between the frames of a message, and changes nothing of it.
        if !frame.is_control {
            // A frame without content takes its turn as well, so that no number of them is nothing.
            let so_far = self.message.unwrap_or(0).saturating_add(header + frame.bytes);
            self.message = (!frame.is_last).then_some(so_far);
        }
    }
}

impl Frame {
    /// The frame with this header; `None` while more of it is to come.
    fn parse(header: &[u8], frame_max: usize) -> Option<Frame> {
        let [first, second] = *header.first_chunk::<2>()?;
        let extended = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if second & 0x80 != 0 { 4 } else { 0 };
        if header.len() < 2 + extended + mask {
            return None;
        }
        let missing = match extended {
            0 => u64::from(second & 0x7f),
            count => header[2..2 + count].iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
        };
        let bytes = usize::try_from(missing).map_or(frame_max, |bytes| bytes.min(frame_max));
        Some(Frame { bytes, missing, is_last: first & 0x80 != 0, is_control: first & 0x08 != 0 })
    }
}

/// Bytes of the longest header of a frame.
const HEADER_MAX: usize = 14;

#[cfg(test)]
mod tests {
    use super::*;

    /// A masked frame with its first byte and so many bytes of content.
    fn frame(first: u8, content: usize) -> Vec<u8> {
        let mut bytes = vec![first];
        match content {
            0..126 => bytes.push(0x80 | content as u8),
            126..65_536 => {
                bytes.push(0x80 | 126);
                bytes.extend_from_slice(&(content as u16).to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 127);
                bytes.extend_from_slice(&(content as u64).to_be_bytes());
            }
        }
        bytes.resize(bytes.len() + 4 + content, 0x55);
        bytes
    }

    #[test]
    fn whole_messages_leave_nothing_however_they_are_cut() {
        let stream = [
            frame(0x82, 5),
            frame(0x02, 200),
            frame(0x00, 0),
            frame(0x89, 7),
            frame(0x80, 70_000),
            frame(0x88, 0),
            frame(0x82, 0),
        ]
        .concat();
        for piece in [1, 3, 1000, usize::MAX] {
            let mut unfinished = Unfinished::new(1 << 20);
            stream.chunks(piece).for_each(|part| unfinished.take(part));
            assert_eq!(unfinished.bytes(), 0, "{piece}");
        }
    }

    #[test]
    fn what_is_not_whole_counts_with_all_that_is_announced() {
        let mut unfinished = Unfinished::new(1000);
        unfinished.take(&frame(0x02, 100));
        let fragment = unfinished.bytes();
        assert_eq!(fragment, 106);
        unfinished.take(&frame(0x89, 50));
        assert_eq!(unfinished.bytes(), fragment, "a control between fragments is no part of them");
        for count in 1..=10 {
            unfinished.take(&frame(0x00, 0));
            assert_eq!(unfinished.bytes(), fragment + 6 * count, "empty fragments");
        }
        unfinished.take(&frame(0x80, 1));
        assert_eq!(unfinished.bytes(), 0);
        unfinished.take(&frame(0x82, 500)[..8]);
        assert_eq!(unfinished.bytes(), 508, "a header makes room for its content");
        let mut unfinished = Unfinished::new(1000);
        unfinished.take(&[0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 2, 3]);
        assert_eq!(unfinished.bytes(), 1014, "and no more than is taken");
    }
}
