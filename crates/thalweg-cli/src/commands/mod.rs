//! One module for each command: its options and its action.

pub mod advisor;
pub mod agent;
pub mod coap;
pub mod configuration;
pub mod doctor;
pub mod idl;
pub mod laboratory;
pub mod list;
pub mod measure;
pub mod page;
pub mod peers;
pub mod probe;
pub mod profile;
pub mod publish;
pub mod recording;
pub mod run;
pub mod shapes;
pub mod shell;
pub mod simulate;
pub mod study;
pub mod subscribe;
pub mod top;
pub mod topic;
pub mod video;
pub mod view;
pub mod why;
