//! The codec and the derive, as a user of both sees them.

mod golden;
mod property;
mod types;
mod zoo;
