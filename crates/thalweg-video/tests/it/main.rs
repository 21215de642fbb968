//! Laws of the sender and the receiver together, over a network whose weather follows from a seed.

mod laws;
mod world;
