//! The API over real sockets on loopback: participants in this process and in child processes.

mod announced;
mod assignability;
mod background;
mod blocking;
mod discovery;
mod exchange;
mod fixture;
mod forgery;
mod generated_types;
mod groups;
mod instances;
mod interfaces;
mod large;
mod listeners;
mod policies;
mod processes;
mod qos;
mod raw;
mod reflection;
mod statuses;
mod surroundings;
mod threads;
mod tracing;
mod types;
