//! The advisor as programs use it: on recorded machines, and on this one.

mod applying;
mod killed;
mod live;
mod machines;
mod rules;
mod stalls;
mod tree;
mod worsening;
