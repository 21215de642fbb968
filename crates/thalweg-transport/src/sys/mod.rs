//! The only place of this crate with `unsafe`: thin, checked wrappers around Linux system calls.

pub(crate) mod address;
#[cfg(any(feature = "v4l2", all(test, target_pointer_width = "64")))]
pub(crate) mod capture;
pub(crate) mod control;
pub(crate) mod ethtool;
pub(crate) mod interfaces;
pub(crate) mod memory;
pub(crate) mod multicast;
pub(crate) mod options;
pub(crate) mod packet;
pub(crate) mod poll;
pub(crate) mod probes;
pub(crate) mod process;
pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod tcp;
