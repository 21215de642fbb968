//! `matrix.sending`: how the samples of a cell share datagrams.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fields::{Field, Fields, ScenarioError};
use super::sections::milliseconds;
use crate::station::{PackingLimits, PackingMethod, Sending, TokenBucket};

/// How the writers of a cell send, where the matrix says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSending {
    /// The method with its limits; the cell has the destination.
    #[serde(flatten)]
    pub sending: Sending,
    /// The flow controller of the method `asynchronous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<TokenBucket>,
}

impl CellSending {
    /// Sends by this method.
    pub fn by(method: PackingMethod) -> CellSending {
        CellSending { sending: Sending::by(method), bucket: None }
    }

    /// Sends by a flow controller that grants so many bytes in each period.
    pub fn paced(bytes: u32, period: Duration) -> CellSending {
        let bucket = bucket(PACED, bytes, period);
        let method = PackingMethod::Asynchronous { flow_controller: bucket.name.clone() };
        CellSending { bucket: Some(bucket), ..CellSending::by(method) }
    }

    /// The value of `sending` in a scenario that makes this.
    pub fn to_toml(&self) -> String {
        let limits = |limits: &PackingLimits| {
            let samples = limits.max_samples.map(|samples| format!(", max_samples = {samples}")).unwrap_or_default();
            format!(", max_bytes = {}{samples}, max_flush_delay_us = {}", limits.max_bytes, limits.max_flush_delay_us)
        };
        let (name, mut rest) = match &self.sending.method {
            PackingMethod::Auto => ("auto", String::new()),
            PackingMethod::Immediate => ("immediate", String::new()),
            PackingMethod::Coalesce(of) => ("coalesce", limits(of)),
            PackingMethod::Batch(of) => ("batch", limits(of)),
            PackingMethod::Asynchronous { .. } => ("asynchronous", String::new()),
        };
        if let Some(bucket) = &self.bucket {
            rest += &format!(", bytes = {}, period_ms = {}", bucket.bytes_per_token, bucket.period_us as f64 / 1e3);
        }
        if let Some(bytes) = self.sending.max_datagram_bytes {
            rest += &format!(", max_datagram_bytes = {bytes}");
        }
        format!("{{ method = {name:?}{rest} }}")
    }
}

impl fmt::Display for CellSending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sending)?;
        match &self.bucket {
            Some(bucket) => {
                let period = Duration::from_micros(bucket.period_us);
                write!(f, " of {} B in {period:?}", bucket.bytes_per_token)
            }
            None => Ok(()),
        }
    }
}

/// A method by its name, or a table with its limits.
pub(super) fn read_sending(field: &Field<'_>) -> Result<CellSending, ScenarioError> {
    if !field.is_table() {
        return match field.choice(&WORDS)? {
            MethodWord::Asynchronous => {
                Err(field.error("needs a flow controller: give a table with `method` and `bytes`"))
            }
            word => Ok(CellSending::by(method(word, PackingLimits::default()))),
        };
    }
    let table = field.table((&KEYS, &[]))?;
    let word = table.require("method")?.choice(&WORDS)?;
    let refuse = |keys: &[&'static str], reason: &str| match keys.iter().find_map(|key| table.get(key)) {
        Some(field) => Err(field.error(reason)),
        None => Ok(()),
    };
    if !matches!(word, MethodWord::Coalesce | MethodWord::Batch) {
        refuse(&KEYS[1..4], "limits what \"coalesce\" and \"batch\" collect")?;
    }
    if word != MethodWord::Asynchronous {
        refuse(&KEYS[4..6], "is of the flow controller of \"asynchronous\"")?;
    }
    let number = |key, min, max| -> Result<Option<u64>, ScenarioError> {
        let field: Option<Field<'_>> = table.get(key);
        field.map(|one| one.integer(min, max)).transpose()
    };
    let usual = PackingLimits::default();
    let limits = PackingLimits {
        max_bytes: number("max_bytes", 1, 1 << 20)?.unwrap_or(usual.max_bytes),
        max_samples: number("max_samples", 1, 1_000_000)?,
        max_flush_delay_us: number("max_flush_delay_us", 1, 60_000_000)?.unwrap_or(usual.max_flush_delay_us),
    };
    let mut out = match word {
        MethodWord::Asynchronous => {
            let (bytes, period) = read_grant(&table)?;
            CellSending::paced(bytes, period)
        }
        word => CellSending::by(method(word, limits)),
    };
    out.sending.max_datagram_bytes = number("max_datagram_bytes", 548, 65_000)?;
    Ok(out)
}

/// `bytes` in each `period_ms`, as a table says it.
pub(super) fn read_grant(table: &Fields<'_>) -> Result<(u32, Duration), ScenarioError> {
    let bytes = table.require("bytes")?.integer(512, 1 << 30)?;
    let period = table.get("period_ms").map_or(Ok(Duration::from_millis(10)), |one| milliseconds(&one, 60_000.0))?;
    Ok((bytes, period))
}

/// A flow controller that grants so many bytes in each period.
pub(super) fn bucket(name: &str, bytes: u32, period: Duration) -> TokenBucket {
    TokenBucket {
        name: name.to_owned(),
        // A token that was not used is lost: saved ones would leave as a burst.
        max_tokens: Some(1),
        tokens_added_per_period: Some(1),
        period_us: (period.as_micros() as u64).max(1),
        bytes_per_token: bytes,
    }
}

fn method(word: MethodWord, limits: PackingLimits) -> PackingMethod {
    match word {
        MethodWord::Auto => PackingMethod::Auto,
        MethodWord::Immediate => PackingMethod::Immediate,
        MethodWord::Coalesce => PackingMethod::Coalesce(limits),
        MethodWord::Batch => PackingMethod::Batch(limits),
        MethodWord::Asynchronous => PackingMethod::Asynchronous { flow_controller: PACED.to_owned() },
    }
}

#[derive(Clone, Copy, PartialEq)]
enum MethodWord {
    Auto,
    Immediate,
    Coalesce,
    Batch,
    Asynchronous,
}

const WORDS: [(&str, MethodWord); 5] = [
    ("auto", MethodWord::Auto),
    ("immediate", MethodWord::Immediate),
    ("coalesce", MethodWord::Coalesce),
    ("batch", MethodWord::Batch),
    ("asynchronous", MethodWord::Asynchronous),
];
const KEYS: [&str; 7] =
    ["method", "max_bytes", "max_samples", "max_flush_delay_us", "bytes", "period_ms", "max_datagram_bytes"];
/// What a writer calls the flow controller of its cell.
const PACED: &str = "paced";

#[cfg(test)]
mod tests {
    use crate::fixtures;
    use crate::scenario::{Cell, Scenario};

    fn parse(methods: &str) -> Result<Scenario, String> {
        fixtures::parse(&format!("payload_bytes = 9\nrate_hz = 10\nsending = {methods}"), "seconds = 1\nruns = 1")
    }

    #[test]
    fn a_method_is_measured_in_a_cell_of_its_own() {
        let methods = r#"["auto", "batch", { method = "coalesce", max_bytes = 9000, max_samples = 7, max_flush_delay_us = 50 },
            { method = "immediate", max_datagram_bytes = 1400 }, { method = "asynchronous", bytes = 2000, period_ms = 2.5 }]"#;
        let scenario = parse(methods).expect("a scenario");
        let names: Vec<String> = scenario.cells.iter().map(Cell::way).collect();
        let expect = [
            "thalweg auto auto",
            "thalweg auto batch (at most 60000 B, 1ms)",
            "thalweg auto coalesce (at most 9000 B, 7 samples, 50µs)",
            "thalweg auto immediate, datagrams of at most 1400 B",
            "thalweg auto asynchronous (paced) of 2000 B in 2.5ms",
        ];
        assert_eq!(names, expect);
        let written: Vec<String> =
            scenario.cells.iter().flat_map(|cell| &cell.sending).map(|one| one.to_toml()).collect();
        assert_eq!(parse(&format!("[{}]", written.join(", "))).expect("a scenario").cells, scenario.cells);
        let json = serde_json::to_string(&scenario.cells).expect("JSON");
        assert_eq!(serde_json::from_str::<Vec<Cell>>(&json).expect(&json), scenario.cells);
    }

    #[test]
    fn a_method_with_what_it_has_no_use_for_is_refused() {
        let refused = |methods: &str, expect: &str| {
            fixtures::check_contains(&parse(methods).expect_err(methods), &[expect]);
        };
        refused("\"bach\"", "did you mean \"batch\"");
        refused(
            "{ method = \"auto\", max_samples = 5 }",
            "max_samples: limits what \"coalesce\" and \"batch\" collect",
        );
        refused("{ method = \"batch\", bytes = 5000 }", "bytes: is of the flow controller");
        refused("\"asynchronous\"", "needs a flow controller");
        refused("{ method = \"asynchronous\" }", "needs \"bytes\"");
        refused("[\"auto\", { method = \"auto\" }]", "stands here twice");
        refused("\"auto\"\nmiddleware = \"cyclone\"", "methods are Thalweg's");
    }
}
