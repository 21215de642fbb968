//! The codec and the derive, as a user of both sees them.

mod evolution;
mod golden;
mod hostile;
mod keys;
mod plain;
mod property;
mod strategies;
mod types;
mod zoo;
