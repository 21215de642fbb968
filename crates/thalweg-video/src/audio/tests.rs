//! Tests of audio: forms, the sender, the receiver, both over a network, and what comes again over it.

mod form;
mod network;
mod numbers;
mod receiver;
mod repair;
