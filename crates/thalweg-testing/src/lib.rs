//! What the tests of several crates share; no crate depends on it but for its tests.

pub mod allocations;
pub mod pages;
pub mod program;
pub mod viewer;
