//! Tests of RTCP: golden octets, and an independent reader and writer.

mod codec;
