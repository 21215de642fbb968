//! Resources and topics of the data space, over loopback.

mod bridge;
mod things;
