//! Measuring a stream against the models.

use std::collections::VecDeque;

use thalweg_base::time::Instant;

use super::{FramePacing, PacingKind};

/// How many frames an adaptive alignment looks back at most: about four seconds.
const ALIGNMENT_FRAMES_MAX: usize = 256;

/// Times closer than this count as equal, so that rounding to nanoseconds does not decide.
const TOLERANCE_NANOS: f64 = 2.0;

/// Where the reads of the receiver model begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// The first packet of frame 0 is read at this time: T_VD, known where sender and receiver share a clock.
    Fixed(Instant),
    /// As early as no packet of this frame and of so many before it is missed: for clocks that drift against each other. At
    /// most 256 frames.
    Adaptive {
        /// Frames looked back at.
        frames: u32,
    },
}

impl Alignment {
    /// By 64 frames: two seconds of most streams.
    pub const USUAL: Alignment = Alignment::Adaptive { frames: 64 };
}

/// What the receiver model shows for a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferFigures {
    /// VRX: the most packets held at a time.
    pub packets_max: u32,
    /// Packets that came after they were to be read; with an adaptive alignment there are none.
    pub underflows: u32,
}

/// Figures of one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FramePacingFigures {
    /// Number of the frame.
    pub frame: u64,
    /// Packets that came.
    pub packets: u32,
    /// C_INST: the highest level of the network model.
    pub burst_max: u32,
    /// The receiver model with the gaps of narrow senders.
    pub gapped: BufferFigures,
    /// The receiver model over the whole frame time.
    pub linear: BufferFigures,
}

/// Figures of all frames until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacingSummary {
    pacing: FramePacing,
    /// Frames measured.
    pub frames: u64,
    /// Packets of these frames that did not come.
    pub packets_missing: u64,
    /// The highest level of the network model.
    pub burst_max: u32,
    /// The worst of the receiver model with gaps.
    pub gapped: BufferFigures,
    /// The worst of the receiver model over the whole frame time.
    pub linear: BufferFigures,
}

/// Why a stream is not of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacingFault {
    /// No frame was measured.
    Nothing,
    /// C_INST exceeded C_MAX.
    Burst {
        /// Packets measured.
        measured: u32,
        /// Packets allowed.
        allowed: u32,
    },
    /// VRX exceeded VRX_FULL.
    Buffer {
        /// Packets measured.
        measured: u32,
        /// Packets allowed.
        allowed: u32,
    },
    /// Packets came after they were to be read.
    Underflow {
        /// Packets.
        packets: u32,
    },
}

impl std::fmt::Display for PacingFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PacingFault::Nothing => f.write_str("no frame was measured"),
            PacingFault::Burst { measured, allowed } => write!(f, "bursts of {measured} packets exceed {allowed}"),
            PacingFault::Buffer { measured, allowed } => {
                write!(f, "a receiver would have to hold {measured} packets instead of {allowed}")
            }
            PacingFault::Underflow { packets } => write!(f, "{packets} packets came after they were to be read"),
        }
    }
}

impl PacingSummary {
    /// Whether the stream was of a kind.
    ///
    /// # Errors
    /// The first limit that it broke.
    pub fn check(&self, kind: PacingKind) -> Result<(), PacingFault> {
        let buffer = match kind {
            PacingKind::Narrow => self.gapped,
            PacingKind::NarrowLinear | PacingKind::Wide => self.linear,
        };
        let (burst_max, buffer_max) = (self.pacing.burst_max(kind), self.pacing.buffer_max(kind));
        if self.frames == 0 {
            Err(PacingFault::Nothing)
        } else if self.burst_max > burst_max {
            Err(PacingFault::Burst { measured: self.burst_max, allowed: burst_max })
        } else if buffer.underflows > 0 {
            Err(PacingFault::Underflow { packets: buffer.underflows })
        } else if buffer.packets_max > buffer_max {
            Err(PacingFault::Buffer { measured: buffer.packets_max, allowed: buffer_max })
        } else {
            Ok(())
        }
    }

    /// The strictest kind that the stream was of.
    pub fn kind(&self) -> Option<PacingKind> {
        PacingKind::ALL.into_iter().find(|kind| self.check(*kind).is_ok())
    }
}

/// Measures a stream frame by frame, without allocation after the first frame.
#[derive(Clone, Debug)]
pub struct PacingMeter {
    pacing: FramePacing,
    bucket: Bucket,
    gapped: Reads,
    linear: Reads,
    frame: Option<Frame>,
    /// When the first packet came, and of which frame.
    start: Option<(Instant, u64)>,
    summary: PacingSummary,
}

/// The packets of the frame that comes in.
#[derive(Clone, Debug)]
struct Frame {
    number: u64,
    burst_max: u32,
    /// Packets in the order of arrival, with nanoseconds since the frame was due.
    arrivals: Vec<(u32, f64)>,
    /// Which packets came.
    has_come: Vec<bool>,
}

impl PacingMeter {
    /// A meter of a stream.
    pub fn new(pacing: FramePacing, alignment: Alignment) -> PacingMeter {
        let summary = PacingSummary {
            pacing,
            frames: 0,
            packets_missing: 0,
            burst_max: 0,
            gapped: BufferFigures::default(),
            linear: BufferFigures::default(),
        };
        PacingMeter {
            pacing,
            bucket: Bucket::default(),
            gapped: Reads::new(PacingKind::Narrow, alignment),
            linear: Reads::new(PacingKind::NarrowLinear, alignment),
            frame: None,
            start: None,
            summary,
        }
    }

    /// Takes a packet, counted from 0 within its frame; returns the figures of the frame before when this one begins a new one.
    ///
    /// Frames are counted by their time stamps, so that a missing one leaves a gap. Packets of a frame that was finished, beyond
    /// the last of a frame, and duplicates count for the network model only.
    pub fn handle_packet(&mut self, frame: u64, packet: u32, at: Instant) -> Option<FramePacingFigures> {
        let (start, first_frame) = *self.start.get_or_insert((at, frame));
        let level = self.bucket.add(nanos_between(at, start), self.pacing.drain_nanos());
        self.summary.burst_max = self.summary.burst_max.max(level);
        let is_new = self.frame.as_ref().is_none_or(|current| frame > current.number);
        let finished = if is_new { self.finish_frame() } else { None };
        if is_new {
            self.begin_frame(frame);
        }
        let due = self.pacing.rate().time_of(frame.saturating_sub(first_frame));
        let Some(current) = self.frame.as_mut().filter(|current| current.number == frame) else { return finished };
        current.burst_max = current.burst_max.max(level);
        if let Some(has_come) = current.has_come.get_mut(packet as usize).filter(|has_come| !**has_come) {
            *has_come = true;
            let since_start = nanos_between(at, start);
            current.arrivals.push((packet, since_start - due.as_nanos() as f64));
        }
        finished
    }

    /// Ends the frame that comes in; returns its figures, if one has begun.
    pub fn finish_frame(&mut self) -> Option<FramePacingFigures> {
        let (start, first_frame) = self.start?;
        let frame = self.frame.as_mut().filter(|frame| !frame.arrivals.is_empty())?;
        let figures = FramePacingFigures {
            frame: frame.number,
            packets: frame.arrivals.len() as u32,
            burst_max: frame.burst_max,
            gapped: self.gapped.measure(&self.pacing, frame, start, first_frame),
            linear: self.linear.measure(&self.pacing, frame, start, first_frame),
        };
        frame.arrivals.clear();
        self.summary.frames += 1;
        self.summary.packets_missing += u64::from(self.pacing.packets() - figures.packets);
        self.summary.gapped.add(figures.gapped);
        self.summary.linear.add(figures.linear);
        Some(figures)
    }

    /// Figures of the frames that were finished; the network model counts all packets.
    pub fn summary(&self) -> PacingSummary {
        self.summary
    }

    fn begin_frame(&mut self, number: u64) {
        let packets = self.pacing.packets() as usize;
        match &mut self.frame {
            Some(frame) => {
                (frame.number, frame.burst_max) = (number, 0);
                frame.has_come.fill(false);
            }
            None => {
                let (arrivals, has_come) = (Vec::with_capacity(packets), vec![false; packets]);
                self.frame = Some(Frame { number, burst_max: 0, arrivals, has_come });
            }
        }
    }
}

impl BufferFigures {
    fn add(&mut self, other: BufferFigures) {
        self.packets_max = self.packets_max.max(other.packets_max);
        self.underflows = self.underflows.saturating_add(other.underflows);
    }
}

/// The network model: a bucket that loses a packet each T_DRAIN, counted from the first packet of the stream.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    level: u32,
    drained: u64,
}

impl Bucket {
    /// Adds a packet; returns the level.
    fn add(&mut self, nanos: f64, drain_nanos: f64) -> u32 {
        let drained = ((nanos + TOLERANCE_NANOS) / drain_nanos).max(0.0) as u64;
        let since = drained.saturating_sub(self.drained);
        self.drained = self.drained.max(drained);
        self.level = self.level.saturating_sub(u32::try_from(since).unwrap_or(u32::MAX)).saturating_add(1);
        self.level
    }
}

/// The receiver model with one schedule of reads.
#[derive(Clone, Debug)]
struct Reads {
    kind: PacingKind,
    alignment: Alignment,
    /// The latest packet of each frame before, in nanoseconds against a schedule that begins with the stream.
    latest: VecDeque<f64>,
    before: Option<u64>,
    /// Packets that came among the first 0, 1, 2 … of a frame.
    came_before: Vec<u32>,
}

impl Reads {
    fn new(kind: PacingKind, alignment: Alignment) -> Reads {
        Reads { kind, alignment, latest: VecDeque::new(), before: None, came_before: Vec::new() }
    }

    fn measure(&mut self, pacing: &FramePacing, frame: &Frame, start: Instant, first_frame: u64) -> BufferFigures {
        let first_read = self.first_read(pacing, frame, start, first_frame);
        self.came_before.clear();
        self.came_before.push(0);
        for has_come in &frame.has_come {
            let count = self.came_before.last().copied().unwrap_or_default();
            self.came_before.push(count + u32::from(*has_come));
        }
        let follows = self.before.replace(frame.number).is_some_and(|before| before + 1 == frame.number);
        let mut figures = BufferFigures::default();
        for (count, (packet, nanos)) in (1..).zip(&frame.arrivals) {
            let since = nanos - first_read;
            if since > pacing.read_nanos(self.kind, *packet) + TOLERANCE_NANOS {
                figures.underflows += 1;
            }
            let slots = self.slots_until(pacing, since);
            let read = self.came_before.get(slots as usize).copied().unwrap_or_default();
            // What is left of the frame before, whose reads are one frame time ahead.
            let left =
                if follows { pacing.packets() - self.slots_until(pacing, since + pacing.frame_nanos()) } else { 0 };
            figures.packets_max = figures.packets_max.max((count + left).saturating_sub(read));
        }
        figures
    }

    /// Nanoseconds from the time at which the frame is due to its first read.
    fn first_read(&mut self, pacing: &FramePacing, frame: &Frame, start: Instant, first_frame: u64) -> f64 {
        match self.alignment {
            // Times of frames count from the first one measured, which is due when its first packet came.
            Alignment::Fixed(at) => {
                let passed = pacing.rate().time_of(first_frame);
                nanos_between(at, start) + passed.as_nanos() as f64
            }
            Alignment::Adaptive { frames } => {
                let late = frame.arrivals.iter().map(|(packet, nanos)| nanos - pacing.read_nanos(self.kind, *packet));
                let latest = late.fold(f64::NEG_INFINITY, f64::max);
                self.latest.push_back(latest);
                while self.latest.len() > (frames as usize).min(ALIGNMENT_FRAMES_MAX) + 1 {
                    self.latest.pop_front();
                }
                self.latest.iter().copied().fold(f64::NEG_INFINITY, f64::max)
            }
        }
    }

    /// How many packets of a frame are read within so many nanoseconds of its first read.
    fn slots_until(&self, pacing: &FramePacing, nanos: f64) -> u32 {
        let spacing = pacing.packet_nanos(self.kind);
        let (part, parts) = pacing.parts(self.kind);
        // A packet that comes at the time of its read is held for that moment. A negative number becomes 0.
        let slots = |nanos: f64| (((nanos - TOLERANCE_NANOS) / spacing).ceil() as u32).min(part);
        (0..parts).map(|index| slots(nanos - f64::from(index) * pacing.frame_nanos() / 2.0)).sum()
    }
}

fn nanos_between(later: Instant, earlier: Instant) -> f64 {
    (i128::from(later.as_nanos()) - i128::from(earlier.as_nanos())) as f64
}
