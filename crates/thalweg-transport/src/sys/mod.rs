//! The only place of this crate with `unsafe`: thin, checked wrappers around Linux system calls.

pub(crate) mod address;
pub(crate) mod control;
pub(crate) mod ethtool;
pub(crate) mod interfaces;
pub(crate) mod multicast;
pub(crate) mod options;
pub(crate) mod packet;
pub(crate) mod poll;
pub(crate) mod probes;
pub(crate) mod process;
pub(crate) mod receive;
pub(crate) mod send;
