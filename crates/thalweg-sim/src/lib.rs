//! Deterministic simulation of Thalweg participants on a virtual network.
#![forbid(unsafe_code)]

mod application;
pub mod clock;
pub mod dissect;
mod draw;
mod endpoints;
mod events;
pub mod inbox;
pub mod lane;
pub mod laws;
pub mod network;
pub mod plan;
mod plan_text;
mod process;
pub mod queue;
pub mod record;
pub mod sample;
mod series;
mod settle;
mod simulation;
pub mod trace;
mod traffic;
mod world;

pub use series::{Report, run_seeds};
pub use world::{Breach, Outcome, World, run, trace};
