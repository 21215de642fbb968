//! Options that both ends of a stream have.

use std::time::Duration;

use clap::Args;

/// When a command ends.
#[derive(Args, Clone, Copy, Debug)]
pub struct LimitOptions {
    /// End after SECONDS (default: --frames, the other end or Ctrl-C ends it).
    #[arg(long, value_name = "SECONDS", value_parser = crate::parse::seconds)]
    pub seconds: Option<Duration>,

    /// End after N frames (default: --seconds, the other end or Ctrl-C ends it).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub frames: Option<u64>,
}

/// Something after a word and a colon, such as `file:PATH`.
pub fn after<'text>(text: &'text str, word: &str) -> Option<&'text str> {
    text.strip_prefix(word)?.strip_prefix(':').filter(|rest| !rest.is_empty())
}
