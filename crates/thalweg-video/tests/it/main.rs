//! The drivers between sockets of the loopback interface.

mod listener;
mod sending;
mod sources;
