//! The codec and the derive, as a user of both sees them.

mod smoke;
mod zoo;
