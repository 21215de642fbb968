//! The paper's interaction layer.
