//! The preset `paper1`: Jeong, "A Study on the Usages of DDS Middleware for Efficient Data Transmission and Reception" (2018), measured
//! again with Thalweg and with other vendors' programs in turns.
//!
//! Table 2 and Figures 7 and 8: bursts of small samples by each method. Table 3 and Figure 9: 5 MB whole and in segments. Table 4: 100 MB
//! in the background under a flow controller, and what the paper does not show, the latency of a topic in a hurry meanwhile. Before the
//! measurement each method's parameters are searched, and the best are written as a [`Profile`](crate::profile::Profile).

mod background;
mod bursts;
mod contender;
mod outlook;
mod plan;
mod presentation;
mod result;
mod scenario;
mod search;

pub use plan::{LinkKind, PEERS, Paper1Plan, UNLIMITED};
pub use presentation::{page, to_text};
pub use result::{BackgroundCell, BurstRuns, ContenderFacts, Missing, Paper1Facts, Paper1Result};
pub use scenario::{expected, run};
pub use search::{MeasuredSettings, Search, Settings, Trial, TunedParameter};

#[cfg(test)]
mod tests;
