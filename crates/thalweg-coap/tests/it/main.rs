//! Resources and topics of the data space, and servers with their clients, over loopback.

mod bodies;
mod bridge;
mod callers;
mod export;
mod things;
