//! Where this user's programs keep what outlives them.

use std::path::PathBuf;

/// `$XDG_STATE_HOME/thalweg`, or else `.local/state/thalweg` in `$HOME`; `None` without both.
pub fn of_user() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(state.join("thalweg"))
}
