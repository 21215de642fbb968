//! The preset `paper5`: Jeon, Lee, Han, Jung, "Experimental Evaluation and Flexible Performance Improvement of IoT Middleware for
//! Efficient Connectivity" (2017), measured again: CoAP servers with fixed and with adaptive handler pools, beside other middleware.
//!
//! Figures 2 to 4: receiver and handlers over time. Figure 5: pools of fixed sizes on more and fewer processors. Figures 6 and 7: how far
//! handlers fall behind the receiver, and the number of threads, over time. Figures 9 and 10: requests a second against the number of
//! clients. Figure 11: larger datagrams. Figure 12: slower machines. And what the paper does not show: response times, losses, processor
//! time, memory, threads, energy; capacity, overload, a flood, and a step of a blocking load.
//!
//! Each run starts a server and a generator in processes of their own.

mod answers;
mod cell;
mod observed;
mod peer;
mod plan;
mod presentation;
mod ramp;
mod result;
mod run;
mod server;
mod study;
mod usage;
mod verdicts;

pub use cell::{Contender, PaperFigure, RequestLoad, ServerCell, ServerRoom, ServerWork};
pub use observed::{ConnectionLine, PoolLine, ServerLine, SessionLine};
pub use peer::{CoapPeer, Deduplication};
pub use plan::{Paper5Plan, ServerSite, law_named};
pub use result::{Paper5Result, Run, ServerCellRuns, ServerUsage};
pub(crate) use run::{LoadOrder, make_load};
pub(crate) use study::CoapStudy;

#[cfg(test)]
mod tests;
