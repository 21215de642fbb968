//! An experiment's processes: the same executable started again, told what to do on its standard input, heard on its standard output.
//!
//! Orders and answers are JSON, one a line. A worker stops when its standard input ends and dies with its parent, so that neither
//! Ctrl-C nor a killed parent leaves one behind.

mod child;
mod pair;
mod supervisor;

pub(crate) use child::{ChildProcess, tie_to_input};
pub(crate) use pair::ProcessPair;
pub(crate) use supervisor::{HeardLine, MESSAGES_MAX, WorkerNews};
pub use supervisor::{Launcher, Supervised};
pub use thalweg_lab_station::{ParentPipe, Stop, WorkerMessage};

#[cfg(test)]
mod tests;
