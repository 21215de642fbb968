//! The advisor as programs use it: on recorded machines, and on this one.

mod machines;
