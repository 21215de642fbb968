//! At the limit of the machine: whether `auto` differs from unicast, or one run from the next.

use super::groups::{Group, WIRE};
use crate::figures::rounded;
use crate::parts::PartResult;
use crate::study::{CPU, CellResult, P99};

/// For each group in which `auto` sent as many bytes as unicast did, whether their 99th percentiles lie apart, run for run.
pub(super) fn sentences(part: &PartResult) -> Vec<String> {
    let groups = part.groups();
    groups.iter().filter_map(|group| sentence(group, part.study.environment.cores)).collect()
}

fn sentence(group: &Group<'_>, cores: usize) -> Option<String> {
    let (unicast, auto) = (group.ways()[0], group.auto()?);
    let bytes = WIRE.median(auto)? / WIRE.median(unicast)?;
    if (bytes - 1.0).abs() > SAME_BYTES {
        return None;
    }
    let (one, other) = (Runs::of(unicast)?, Runs::of(auto)?);
    let (ours, theirs) = (one.range(), other.range());
    let found = if other.least > one.most {
        "every run of auto is slower than every run of unicast, which this does not explain"
    } else if other.most < one.least {
        "every run of auto is faster than every run of unicast"
    } else {
        "the two ranges overlap: auto takes the same way, and runs differ by what else ran, for which samples wait where no processor is free"
    };
    Some(format!(
        "{}: auto sent by unicast ({} times its bytes), and all processes used {} and {} of {cores} CPUs. The 99th percentile of a run lies {ours} with \
         unicast and {theirs} with auto: {found}.",
        group.name(),
        rounded(bytes),
        rounded(CPU.median(unicast)?),
        rounded(CPU.median(auto)?),
    ))
}

/// The 99th percentiles of the runs of a cell in µs.
struct Runs {
    least: f64,
    most: f64,
    /// The largest of a run on a quiet machine, where one was disturbed.
    most_quiet: Option<f64>,
}

impl Runs {
    /// `None` where a run has none.
    fn of(cell: &CellResult) -> Option<Runs> {
        let all: Vec<(f64, bool)> =
            cell.runs.iter().map(|run| Some(((P99.of)(run)?, run.contaminated))).collect::<Option<_>>()?;
        let most_of = |all: &mut dyn Iterator<Item = f64>| all.max_by(f64::total_cmp);
        let quiet = most_of(&mut all.iter().filter(|(_, is_disturbed)| !is_disturbed).map(|(us, _)| *us));
        Some(Runs {
            least: all.iter().map(|(us, _)| *us).min_by(f64::total_cmp)?,
            most: most_of(&mut all.iter().map(|(us, _)| *us))?,
            most_quiet: quiet.filter(|_| all.iter().any(|(_, is_disturbed)| *is_disturbed)),
        })
    }

    fn range(&self) -> String {
        let quiet = self.most_quiet.map(|us| format!(" (at most {} on a quiet machine)", milliseconds(us)));
        format!("from {} to {}{}", milliseconds(self.least), milliseconds(self.most), quiet.unwrap_or_default())
    }
}

fn milliseconds(us: f64) -> String {
    if us.is_finite() { format!("{} ms", rounded(us / 1e3)) } else { "never".to_owned() }
}

/// Bytes that differ by less were sent by the same way.
const SAME_BYTES: f64 = 0.1;
