//! How much of a paper is measured again.

/// How long the repetition of a paper may take. What is left out for it stands with each paper's plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// As long as figures with intervals need.
    Full,
    /// Some minutes: fewer cells and fewer runs of them.
    Quick,
}
