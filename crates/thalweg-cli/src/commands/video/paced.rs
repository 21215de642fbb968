//! How evenly packets leave or arrive, as JSON and as text.

use std::fmt;

use serde::Serialize;
use thalweg_video::conformance::{PacingKind, PacingSummary};

/// A stream beside the models of ST 2110-21.
#[derive(Debug, Serialize)]
pub struct PacingFigures {
    /// The strictest kind of sender of ST 2110-21 that it is; null for none.
    pub pacing: Option<&'static str>,
    pub burst_max: u32,
    pub buffer_gapped_max: u32,
    pub buffer_linear_max: u32,
    pub frames_measured: u64,
    /// Each kind, and why the stream is not of it.
    pub kinds: Vec<KindFigures>,
}

/// A kind of sender.
#[derive(Debug, Serialize)]
pub struct KindFigures {
    pub kind: &'static str,
    pub fault: Option<String>,
}

impl PacingFigures {
    pub fn new(summary: &PacingSummary) -> PacingFigures {
        let kind = |kind: PacingKind| {
            let fault = summary.check(kind).err().map(|fault| fault.to_string());
            KindFigures { kind: kind.word(), fault }
        };
        PacingFigures {
            pacing: summary.kind().map(PacingKind::word),
            burst_max: summary.burst_max,
            buffer_gapped_max: summary.gapped.packets_max,
            buffer_linear_max: summary.linear.packets_max,
            frames_measured: summary.frames,
            kinds: PacingKind::ALL.map(kind).into(),
        }
    }

    /// Why the stream is not of a kind, if it is not.
    pub fn fault(&self, kind: PacingKind) -> Option<String> {
        self.kinds.iter().find(|found| found.kind == kind.word()).and_then(|found| found.fault.clone())
    }
}

impl fmt::Display for PacingFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "pacing   {} over {} frames: bursts of {} packets, a receiver holds {} with the gaps of SDI and {} without",
            self.pacing.unwrap_or("of no kind of ST 2110-21"),
            self.frames_measured,
            self.burst_max,
            self.buffer_gapped_max,
            self.buffer_linear_max
        )?;
        for KindFigures { kind, fault } in &self.kinds {
            write!(f, "\n         {kind}: {}", fault.as_deref().unwrap_or("yes"))?;
        }
        Ok(())
    }
}
