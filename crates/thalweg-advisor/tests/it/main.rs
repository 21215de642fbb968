//! The advisor as programs use it: on recorded machines, and on this one.

mod applying;
mod killed;
mod machines;
mod tree;
