//! Laws of whole worlds: drawn ones by the hundred, and named ones that once went wrong.

mod busy;
mod congestion;
mod crowds;
mod farewells;
mod found;
mod households;
mod laggards;
mod links;
mod lossy;
mod moves;
mod numbers;
mod pictures;
mod policies;
mod policy_worlds;
mod scenario;
mod seeds;
mod sharing;
