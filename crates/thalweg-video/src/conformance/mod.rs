//! How evenly video is sent, by the two models of SMPTE ST 2110-21: the burst that a network has to hold, and the packets that
//! a receiver has to hold.
//!
//! [`FramePacing`] gives the limits for a stream, and [`PacingMeter`] measures it from arrivals; it serves a sender's own log
//! as well. Arrivals must have been stamped one by one: packets that the kernel joined (GRO) share a time and measure as a
//! burst that the wire did not have.
//!
//! The formulas are those of two open analysers, EBU LIST and the Media Transport Library, which agree where both have one; the
//! standard itself was not at hand.

mod limits;
mod meter;
#[cfg(test)]
mod tests;

pub use limits::{FramePacing, PACKETS_MAX, PacingRefusal};
pub use meter::{Alignment, BufferFigures, FramePacingFigures, PacingFault, PacingMeter, PacingSummary};

/// How evenly a sender sends (ST 2110-21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacingKind {
    /// Narrow: in the active part of a frame time, as SDI would.
    Narrow,
    /// Narrow linear: over the whole frame time.
    NarrowLinear,
    /// Wide: over the whole frame time, in bursts.
    Wide,
}

impl PacingKind {
    /// Every kind, the strictest first.
    pub const ALL: [PacingKind; 3] = [PacingKind::Narrow, PacingKind::NarrowLinear, PacingKind::Wide];

    /// The value of `TP` in a session description.
    pub const fn word(self) -> &'static str {
        match self {
            PacingKind::Narrow => "2110TPN",
            PacingKind::NarrowLinear => "2110TPNL",
            PacingKind::Wide => "2110TPW",
        }
    }

    /// The kind that a value of `TP` names.
    pub fn from_word(word: &str) -> Option<PacingKind> {
        PacingKind::ALL.into_iter().find(|kind| kind.word() == word)
    }
}
