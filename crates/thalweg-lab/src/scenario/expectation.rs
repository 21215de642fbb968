//! `[expect]`: what has to hold in every cell; it decides the exit code.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A bound on one quantity of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The flow that it is meant for; missing means every cell.
    pub flow: Option<String>,
    /// What is judged.
    pub quantity: Quantity,
    /// On which side of the bound it has to lie.
    pub comparison: Relation,
    /// The bound, in the unit of the quantity.
    pub bound: f64,
}

/// What can be judged: the worst run of a cell for counts and shares, the median over its runs for latencies and rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Samples in time, in per cent of those due.
    InTimePct,
    /// Samples that were sent and never arrived.
    Lost,
    /// Samples that arrived after their time.
    Late,
    /// Samples that were due and never written.
    NotSent,
    /// Arrivals of a sample that had arrived before.
    Duplicates,
    /// Arrivals after a later sample of the same writer.
    Reordered,
    /// Median response latency in microseconds.
    P50Us,
    /// 99th percentile of the response latency in microseconds.
    P99Us,
    /// 99.9th percentile of the response latency in microseconds.
    P999Us,
    /// Median round trip of a closed loop in microseconds.
    RoundTripP50Us,
    /// 99th percentile of the round trips of a closed loop in microseconds.
    RoundTripP99Us,
    /// Samples received a second, all subscribers together.
    ReceivedPerS,
    /// Jain's index of the samples in time over the pairs.
    Jain,
}

impl Quantity {
    /// Every quantity with its key.
    pub const ALL: [(&'static str, Quantity); 13] = [
        ("in_time_pct", Quantity::InTimePct),
        ("lost", Quantity::Lost),
        ("late", Quantity::Late),
        ("not_sent", Quantity::NotSent),
        ("duplicates", Quantity::Duplicates),
        ("reordered", Quantity::Reordered),
        ("p50_us", Quantity::P50Us),
        ("p99_us", Quantity::P99Us),
        ("p999_us", Quantity::P999Us),
        ("round_trip_p50_us", Quantity::RoundTripP50Us),
        ("round_trip_p99_us", Quantity::RoundTripP99Us),
        ("received_per_s", Quantity::ReceivedPerS),
        ("jain", Quantity::Jain),
    ];

    /// The quantity's key in a scenario.
    pub fn key(self) -> &'static str {
        Quantity::ALL.iter().find(|(_, quantity)| *quantity == self).map_or("", |(key, _)| key)
    }
}

/// On which side of a bound a quantity has to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `==`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    More,
}

impl Relation {
    /// Longer signs first, so that none is read as the beginning of another.
    const SIGNS: [(&'static str, Relation); 5] = [
        ("<=", Relation::AtMost),
        (">=", Relation::AtLeast),
        ("==", Relation::Equal),
        ("<", Relation::Less),
        (">", Relation::More),
    ];

    /// Reads a bound such as `<= 2000`.
    ///
    /// # Errors
    /// What would be right.
    pub fn bound(text: &str) -> Result<(Relation, f64), String> {
        let needed = || format!("a bound such as \"<= 2000\" is needed, not {text:?}; signs are <, <=, ==, >= and >");
        let (comparison, rest) = Relation::SIGNS
            .iter()
            .find_map(|(sign, comparison)| Some((*comparison, text.trim().strip_prefix(sign)?)))
            .ok_or_else(needed)?;
        let bound: f64 = rest.trim().parse().map_err(|_| needed())?;
        if bound.is_finite() { Ok((comparison, bound)) } else { Err(needed()) }
    }

    /// Whether `value` lies on this side of `bound`.
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Relation::Less => value < bound,
            Relation::AtMost => value <= bound,
            Relation::Equal => value == bound,
            Relation::AtLeast => value >= bound,
            Relation::More => value > bound,
        }
    }
}

impl Expectation {
    /// Reads a bound such as `<= 2000`.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(quantity: Quantity, text: &str) -> Result<Expectation, String> {
        let (comparison, bound) = Relation::bound(text)?;
        Ok(Expectation { flow: None, quantity, comparison, bound })
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = Relation::SIGNS.iter().find(|(_, known)| *known == self.comparison).map_or("", |(sign, _)| sign);
        write!(f, "{} {sign} {}", self.quantity.key(), self.bound)
    }
}
