//! The API over real sockets on loopback: participants in this process and in child processes.

mod announced;
mod asynchronous;
mod background;
mod blocking;
mod conditions;
mod discovery;
mod exchange;
mod fixture;
mod forgery;
mod groups;
mod instance_access;
mod instances;
mod interfaces;
mod large;
mod listeners;
mod processes;
mod qos;
mod raw;
mod reflection;
mod statuses;
mod surroundings;
mod threads;
mod tracing;
mod types;
