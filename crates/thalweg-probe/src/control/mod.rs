//! The conversation of the two ends: who may say what when, how long each may take, and how it is written. Without I/O.

mod conversation;
mod message;

pub use conversation::{Conversation, ConversationError, EndRole, LINE_MAX, SECONDS_KEPT};
pub use message::{Begin, ControlMessage, Ready};

#[cfg(test)]
mod tests;
