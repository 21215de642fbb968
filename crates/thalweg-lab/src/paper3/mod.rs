//! The preset `paper3`: Jo, Seok, Lee, Byeon, "Optimizing System Performance for Uncompressed HDTV over 10-Gigabit Ethernet" (2006),
//! measured again between two hosts of this machine.
//!
//! Figure 2: throughput against MTU, today with and without segmentation offload. Figure 4: several streams. Figure 5: round trips against
//! size and moderation. The ladder from an untuned receiver to a tuned one. Tables 1 and 2, Figures 6 and 7: load, frame rate, round trip
//! and jitter against moderation, in runs of seconds and of five minutes. And what the paper does not show: one processor and all, video
//! beside TCP on a shaped link with and without isolation, other programs with the same picture, the same picture as DDS topics, and bounds
//! of Thalweg's own.
//!
//! A run has two network namespaces of its own, joined by a veth pair, or where frames are gathered or lost by the lab's relay. The ends
//! are the product: `thalweg video`, `thalweg perf`, and the topics of `thalweg-video`.

mod answers;
mod bounds;
mod cell;
mod commands;
mod defects;
mod end;
mod figures;
mod findings;
mod load;
mod moderation;
mod peer;
mod plan;
mod presentation;
mod result;
mod run;
mod site;
mod study;
mod topics;
mod truth;

pub use cell::{
    CpuPlacement, HdtvCell, HdtvPart, HdtvTraffic, Isolation, LinkSetting, LinkShape, OtherWork, PictureBatching,
    PictureCase, PictureEnds, PictureRate, ReceiveModeration, Segmenting,
};
pub use figures::{EndLoad, PictureFigures, StreamShown, TripsShown};
pub(crate) use moderation::{ModerationOrder, moderate};
pub use peer::VideoPeer;
pub use plan::Paper3Plan;
pub use result::{HdtvCellRuns, HdtvRun, Paper3Result};
pub use site::HdtvSite;
pub(crate) use study::HdtvStudy;
pub(crate) use topics::{TopicOrder, publish_picture, subscribe_picture};
pub use truth::RelayTruth;

#[cfg(test)]
mod tests;
