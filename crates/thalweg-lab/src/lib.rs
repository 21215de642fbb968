//! Experiments on data distribution with honest statistics and a report.
