//! Entry point.

mod interrupt;
mod nearest;
mod outcome;
mod qos_options;

fn main() {}
