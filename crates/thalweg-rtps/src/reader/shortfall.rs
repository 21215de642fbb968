//! What a reader did not hand over, and why: SAMPLE_LOST and SAMPLE_REJECTED (DDS 1.4 §2.2.4.1).

use std::fmt;
use std::ops::AddAssign;

use super::Reader;
use crate::history::RejectReason;
use crate::status::{Status, StatusCounts, Told};
use crate::types::KeyHash;

/// Why a sample that was written will never be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// A best-effort sample did not come, or came behind one that was written after it.
    NeverArrived,
    /// Parts of a large best-effort sample did not come.
    Incomplete,
    /// The writer no longer held it when it was to be repeated, or gave this reader up.
    GoneAtWriter,
    /// Its key cannot be computed from its bytes, and the writer sent no key hash with it: nothing tells its instance.
    KeyUnknown,
    /// It belongs to a coherent set of which other samples are missing, or which is larger than the reader's memory.
    SetIncomplete,
}

impl LossReason {
    /// Those that this version tells apart, for other crates of Thalweg. Others read [`Losses::by_reason`].
    #[doc(hidden)]
    pub const ALL: [LossReason; 5] = [
        LossReason::NeverArrived,
        LossReason::Incomplete,
        LossReason::GoneAtWriter,
        LossReason::KeyUnknown,
        LossReason::SetIncomplete,
    ];
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LossReason::NeverArrived => "never arrived",
            LossReason::Incomplete => "arrived in part",
            LossReason::GoneAtWriter => "gone at the writer before they could be repeated",
            LossReason::KeyUnknown => "without a key that can be read",
            LossReason::SetIncomplete => "of incomplete coherent sets",
        })
    }
}

/// Samples that were written and will never be taken, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    by_reason: [u64; LossReason::ALL.len()],
    last: Option<LossReason>,
}

impl Losses {
    /// As another participant tells them: the counts in the order of [`LossReason::ALL`].
    #[doc(hidden)]
    pub fn told(by_reason: [u64; LossReason::ALL.len()], last: Option<LossReason>) -> Losses {
        Losses { by_reason, last }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.by_reason.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The number for each reason, those without losses included.
    pub fn by_reason(&self) -> impl Iterator<Item = (LossReason, u64)> + use<> {
        LossReason::ALL.into_iter().zip(self.by_reason)
    }

    /// Those that were lost for one reason.
    pub fn of(&self, reason: LossReason) -> u64 {
        self.by_reason[reason as usize]
    }

    /// Why the last one was lost.
    pub fn last_reason(&self) -> Option<LossReason> {
        self.last
    }
}

/// The losses of two readers; the last one is that of the reader that is added, if it lost any.
impl AddAssign for Losses {
    fn add_assign(&mut self, other: Losses) {
        for (sum, count) in self.by_reason.iter_mut().zip(other.by_reason) {
            *sum = sum.saturating_add(count);
        }
        self.last = other.last.or(self.last);
    }
}

/// The counts with their reasons, such as `5 never arrived, 1 without a key that can be read`; empty without losses.
impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for reason in LossReason::ALL {
            if self.of(reason) > 0 {
                write!(f, "{separator}{} {reason}", self.of(reason))?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// Samples that found no room when they came, each counted once however often it was offered again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rejections {
    /// All of them. Reliable ones are kept back until there is room, best-effort ones are dropped.
    pub total: u64,
    /// Why the last one found no room.
    pub last_reason: Option<RejectReason>,
    /// The instance of that sample; zero on keyless topics.
    pub last_instance: Option<KeyHash>,
}

impl Told for Losses {
    fn counts(&self) -> StatusCounts {
        StatusCounts { total: self.total(), current: 0 }
    }

    fn since(&self, _told: StatusCounts) -> Losses {
        *self
    }
}

impl Told for Rejections {
    fn counts(&self) -> StatusCounts {
        StatusCounts { total: self.total, current: 0 }
    }

    fn since(&self, _told: StatusCounts) -> Rejections {
        *self
    }
}

impl Reader {
    /// SAMPLE_LOST: how many samples will never be taken, and why.
    pub fn losses(&self) -> Losses {
        *self.handover.shortfall.losses()
    }

    /// SAMPLE_REJECTED: how many samples found no room, and why the last one did not.
    pub fn rejections(&self) -> Rejections {
        *self.handover.shortfall.rejections()
    }

    /// Which statuses have changed since the last call.
    #[inline]
    pub(crate) fn take_news(&mut self) -> StatusNews {
        self.handover.shortfall.take_news()
    }
}

/// Which statuses have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusNews {
    /// SAMPLE_LOST.
    pub lost: bool,
    /// SAMPLE_REJECTED.
    pub rejected: bool,
}

/// Both statuses of one reader.
#[derive(Debug, Default)]
pub(super) struct Shortfall {
    losses: Status<Losses>,
    rejections: Status<Rejections>,
}

impl Shortfall {
    pub(super) fn losses(&self) -> &Losses {
        self.losses.now()
    }

    pub(super) fn rejections(&self) -> &Rejections {
        self.rejections.now()
    }

    pub(super) fn lose(&mut self, reason: LossReason, count: u64) {
        if count > 0 {
            self.losses.change(|losses| {
                let counted = &mut losses.by_reason[reason as usize];
                *counted = counted.saturating_add(count);
                losses.last = Some(reason);
            });
        }
    }

    pub(super) fn reject(&mut self, reason: RejectReason, instance: KeyHash) {
        self.rejections.change(|rejections| {
            rejections.total += 1;
            rejections.last_reason = Some(reason);
            rejections.last_instance = Some(instance);
        });
    }

    /// What has changed since the last call.
    #[inline]
    pub(super) fn take_news(&mut self) -> StatusNews {
        StatusNews { lost: self.losses.tell_changed().is_some(), rejected: self.rejections.tell_changed().is_some() }
    }
}
