//! Tests of RTCP: golden octets, an independent reader and writer, and two sessions that talk.

mod codec;
mod session;
