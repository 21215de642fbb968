//! Deterministic simulation of Thalweg participants on a virtual network.
#![forbid(unsafe_code)]

mod application;
mod calls;
pub mod clock;
pub mod dissect;
mod disturb;
mod draw;
mod draw_changing;
mod draw_policies;
mod draw_wide;
mod earlier;
mod endpoints;
mod events;
mod household;
pub mod inbox;
mod intruder;
pub mod lane;
pub mod laws;
pub mod network;
pub mod plan;
mod plan_text;
mod process;
mod publisher;
pub mod queue;
pub mod record;
mod rules;
pub mod sample;
mod series;
mod settle;
mod simulation;
mod store;
mod toll;
pub mod trace;
mod traffic;
mod trouble;
mod watch;
mod world;

pub use draw_changing::CHANGING_SEEDS_FROM;
pub use draw_policies::POLICY_SEEDS_FROM;
pub use draw_wide::WIDE_SEEDS_FROM;
pub use series::{Report, run_seeds};
pub use toll::Toll;
pub use world::{Breach, World, WorldOutcome, run, trace};
