//! Streams as topics, over loopback and between network namespaces.

mod exchange;
mod fixture;
mod network;
mod processes;
