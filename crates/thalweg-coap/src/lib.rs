//! CoAP middleware: the protocol as a state machine without I/O, and the layers above it.
//!
//! [`message`] and [`link_format`] are codecs. [`endpoint`] is the message layer of RFC 7252 for both roles with
//! observation, block-wise transfer and caching: bytes and `now` go in, bytes, events and deadlines come out.
//! [`scheduler`] decides on which threads handlers run, and [`interaction`] brings requests to them and answers back.
//! [`dtls`] protects the datagrams between two hosts by [`credentials`]; [`identity`] says who asks, and who may.
//! [`oscore`] protects requests and responses from one end to the other (RFC 8613).
//! [`device`] finds and links sensors and actuators; [`resource`] keeps their readings and passes instructions to them;
//! [`service`] runs applications that use resources of this and of other things. [`data_space`] makes topics of resources
//! and resources of topics. [`senml`], [`directory`] and [`proxy`] are what constrained networks expect beside the resources
//! themselves; [`gateway`] puts everything together by a file, and [`statistics`] tells how it does.
#![forbid(unsafe_code)]

pub mod credentials;
pub mod data_space;
pub mod device;
pub mod directory;
pub mod dtls;
pub mod endpoint;
pub mod gateway;
pub mod identity;
pub mod interaction;
pub mod link_format;
pub mod message;
pub mod oscore;
pub mod proxy;
pub mod resource;
pub mod scheduler;
pub mod senml;
pub mod service;
pub mod statistics;
