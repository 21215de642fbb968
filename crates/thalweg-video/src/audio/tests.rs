//! Tests of audio: forms, the sender, the receiver, and both over a network.

mod form;
mod network;
mod numbers;
mod receiver;
