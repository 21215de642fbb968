//! Plain UDP and TCP between two hosts: throughput by streams, sizes and rates, round trips, and where datagrams got lost.
//!
//! It answers what Iperf, Netperf and Hpcbench answer, and what they leave open: which layer lost a datagram, and what both ends
//! paid. The end that asks is the client, [`measure`]; the other one is a [`ProbeServer`].
//!
//! * [`control`] is the conversation of the ends, one JSON object a line over TCP: codec and sessions without I/O.
//! * [`account`] is what a receiver counts and when a sender sends: without I/O or a clock.
//! * `io` drives both with sockets of [`thalweg_transport::stream`] and with TCP.
//!
//! Datagrams carry a number and the measurement's token, so that whatever is not of this measurement counts nothing, and the law
//! `received + lost = offered` holds exactly.
#![forbid(unsafe_code)]

pub mod account;
pub mod control;
mod error;
mod figures;
mod io;
mod order;
mod reports;

pub use error::ProbeError;
pub use figures::{DatagramFigures, ProbeFigures, ProbeTripFigures, StreamFigures};
pub use io::{ClientOptions, ProbeServer, ProbeServerOptions, Repeat, measure};
pub use order::{
    DURATION_MAX, Fragments, Joining, OrderError, ProbeOrder, ProbeProtocol, RATE_MAX, STREAMS_MAX, Shape,
    StreamDirection, TCP_SIZE_MAX, UDP_SIZE_MIN, VERSION, datagram_payload,
};
pub use reports::{EndReport, ProbeSecond, ReceivedReport, SentReport};
