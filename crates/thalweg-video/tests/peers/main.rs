//! Pictures and sound to and from programs of others: GStreamer, FFmpeg, a reader in Python and Wireshark's dissector.
//!
//! These tests need programs that a toolchain does not bring, and a loopback interface of their own, so cargo leaves them out:
//! `cargo xtask test video` sets them up and runs them. Pictures are compared octet by octet.

mod dissector;
mod ffmpeg;
mod gstreamer;
mod network;
mod pictures;
mod python;
mod relay;
mod sound;
mod stream;
