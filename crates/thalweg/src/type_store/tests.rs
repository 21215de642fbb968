//! Questions, answers and verdicts, without a network.

use super::*;
