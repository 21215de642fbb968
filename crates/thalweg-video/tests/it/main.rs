//! Laws of the sender and the receiver together, over a network whose weather follows from a seed; and their drivers, between
//! sockets of the loopback interface.

mod joining;
mod laws;
mod listener;
mod receiving;
mod sending;
mod sound;
mod sources;
mod succession;
mod world;
