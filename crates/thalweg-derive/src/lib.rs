//! #[derive(Topic)] for Thalweg.
