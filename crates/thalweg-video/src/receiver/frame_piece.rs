//! The place of a packet's pixels within the frame.

use crate::format::VideoFormat;

/// The pieces of a packet within the frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FramePiece {
    pub line: u16,
    pub first_group: u16,
    pub groups: u16,
}

impl FramePiece {
    /// The octets of its field that are sent before it.
    pub fn octets_before(self, format: VideoFormat) -> usize {
        let lines = usize::from(self.line / format.scan().fields());
        let group = usize::from(format.pixels().group().octets);
        lines * format.line_octets() + usize::from(self.first_group) * group
    }
}
