//! The number of readers from which on a group is cheaper than copies: predicted, then measured around the prediction.
//!
//! The processor time of a run grows with the number of readers by nearly the same amount for each, by either way. Two numbers of readers
//! calibrate both lines; they cross where the ways cost the same. Thalweg's own model, which counts link time, gives a second prediction.

use super::groups::Group;
use super::plan::{CALIBRATION, CROSSOVER};
use super::result::{Paper2Result, Winner};
use crate::figures::{or_dash, rounded};
use crate::parts::PartResult;
use crate::report::Section;
use crate::study::{CPU, CellResult};
use crate::table::Table;

/// Numbers of readers that calibrate the lines.
pub(super) const CALIBRATED: [u32; 2] = [2, 12];

/// A cost that grows with the number of readers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    one: f64,
    each: f64,
}

impl Line {
    /// Through the medians of two cells.
    fn through([(few, low), (many, high)]: [(f64, f64); 2]) -> Line {
        let each = (high - low) / (many - few);
        Line { one: low - each * few, each }
    }

    fn at(self, readers: u32) -> f64 {
        self.one + self.each * f64::from(readers)
    }
}

/// What the calibration foretells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prediction {
    unicast: Line,
    multicast: Line,
    /// Readers at which both ways keep the links busy for as long, by Thalweg's own model.
    pub(super) by_links: Option<f64>,
}

impl Prediction {
    /// From the runs of the calibration; `None` where a cell of it has no figure.
    pub(super) fn of(calibration: &PartResult) -> Option<Prediction> {
        let groups = calibration.groups();
        let line = |way: usize| {
            let point = |readers: u32| {
                let group = groups.iter().find(|group| group.cell().subscribers == readers)?;
                Some((f64::from(readers), CPU.median(group.cells[way])?))
            };
            Some(Line::through([point(CALIBRATED[0])?, point(CALIBRATED[1])?]))
        };
        // A writer that is told to send copies computes no cost of a group.
        let by_links = groups.iter().flat_map(|group| &group.cells).find_map(|cell| links_cross(cell));
        Some(Prediction { unicast: line(0)?, multicast: line(1)?, by_links })
    }

    /// Readers at which both ways take as much processor time; `None` where they never do, or always.
    pub(super) fn crossing(&self) -> Option<f64> {
        let slope = self.unicast.each - self.multicast.each;
        let readers = (self.multicast.one - self.unicast.one) / slope;
        (slope > 0.0 && readers >= 1.0).then_some(readers)
    }

    /// Numbers of readers to be measured: about the crossing, or where it would be told best that there is none.
    pub(super) fn around(&self) -> Vec<u32> {
        let middle = self.crossing().map_or(1.0, |readers| readers.min(f64::from(READERS_MAX - SPREAD))).round() as u32;
        let all = [middle.saturating_sub(SPREAD), middle, middle + SPREAD];
        let mut out: Vec<u32> = all.into_iter().map(|readers| readers.max(1)).collect();
        out.dedup();
        out
    }

    /// What a group costs by copies, at so many readers.
    fn ratio(&self, readers: u32) -> f64 {
        self.multicast.at(readers) / self.unicast.at(readers)
    }

    fn told(&self) -> String {
        let slope = self.unicast.each - self.multicast.each;
        match self.crossing() {
            Some(readers) => format!("By processor time, both ways are predicted to cost the same at {} readers.", rounded(readers)),
            None if slope > 0.0 => "By processor time, a group is predicted to be cheaper from the first reader on.".to_owned(),
            None => "By processor time, no number of readers is predicted to make a group cheaper: each further one costs as much or more by a group.".to_owned(),
        }
    }
}

/// Readers at which the link times of a run's ways meet: that of copies grows with the readers, that of a group does not.
fn links_cross(cell: &CellResult) -> Option<f64> {
    let costs = cell.runs.iter().find_map(|run| run.link_costs).filter(|costs| costs.unicast_milli > 0)?;
    Some(f64::from(cell.cell.subscribers) * costs.multicast_milli as f64 / costs.unicast_milli as f64)
}

/// Prediction and measurement side by side; nothing where the calibration was not measured.
pub(super) fn section(result: &Paper2Result) -> Option<Section> {
    let part = |name: &str| result.parts.iter().find(|part| part.name == name);
    let (calibration, measured) = (part(CALIBRATION)?, part(CROSSOVER)?);
    let prediction = Prediction::of(calibration)?;
    let header = ["readers", "group by copies, predicted", "measured", "95 % interval", "ahead"];
    let row = |group: &Group<'_>| {
        let is_own =
            |winner: &&Winner| winner.part == CROSSOVER && winner.group == group.name() && winner.quantity == CPU.name;
        let winner = result.winners.iter().find(is_own);
        let ratio = winner.and_then(|winner| winner.ratio);
        let median = |way: usize| CPU.median(group.cells[way]);
        let estimate = ratio.map(|ratio| ratio.estimate).or_else(|| Some(median(1)? / median(0)?));
        vec![
            group.cell().subscribers.to_string(),
            format!("{:.3}", prediction.ratio(group.cell().subscribers)),
            or_dash(estimate, |ratio| format!("{ratio:.3}")),
            or_dash(ratio, |ratio| format!("{:.3} to {:.3}", ratio.low, ratio.high)),
            winner.map_or_else(|| "not judged".to_owned(), |winner| winner.verdict.clone()),
        ]
    };
    let caption = "Processor time of all hosts: what a group costs by what copies cost";
    let table = Table::of(caption, &header, measured.groups().iter().map(row));
    let links = prediction.by_links.map_or_else(
        || "Thalweg's own model has no group for these readers.".to_owned(),
        |readers| format!(
            "Thalweg's own model, which counts link time and not processors, has both ways equal at {} readers; auto changes later, below half of the copies' cost.",
            rounded(readers)
        ),
    );
    Some(Section {
        title: measured.title.clone(),
        lead: format!(
            "One publisher. {} and {} readers calibrate the cost of each way; the numbers below were measured after the prediction.",
            CALIBRATED[0], CALIBRATED[1]
        ),
        seen: vec![prediction.told(), links],
        tables: vec![table],
        ..Section::default()
    })
}

/// Readers beside the crossing.
const SPREAD: u32 = 2;
/// Four hosts carry so many without crowding the machine.
const READERS_MAX: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn prediction(unicast: [f64; 2], multicast: [f64; 2]) -> Prediction {
        let line = |costs: [f64; 2]| Line::through([(2.0, costs[0]), (12.0, costs[1])]);
        Prediction { unicast: line(unicast), multicast: line(multicast), by_links: None }
    }

    #[test]
    fn lines_cross_where_both_ways_cost_the_same() {
        // Copies: 0.1 + 0.05 each; the group: 0.3 + 0.01 each.
        let both = prediction([0.2, 0.7], [0.32, 0.42]);
        let crossing = both.crossing().expect("they cross");
        assert!((crossing - 5.0).abs() < 1e-9, "{crossing}");
        assert_eq!(both.around(), [3, 5, 7]);
        assert!(both.ratio(3) > 1.0 && (both.ratio(5) - 1.0).abs() < 1e-9 && both.ratio(7) < 1.0);
        assert!(both.told().contains("at 5.00 readers"), "{}", both.told());
    }

    #[test]
    fn ways_that_never_cross_are_told_and_measured_at_few_readers() {
        let never = prediction([0.2, 0.7], [0.4, 1.4]);
        assert_eq!((never.crossing(), never.around()), (None, vec![1, 3]));
        assert!(never.told().contains("no number of readers") && never.told().contains("as much or more by a group"));
        let always = prediction([0.2, 0.7], [0.1, 0.2]);
        assert_eq!(always.crossing(), None);
        assert!(always.told().contains("from the first reader on"));
    }

    #[test]
    fn a_far_crossing_is_looked_for_no_further_than_the_hosts_carry() {
        let far = prediction([0.20, 0.21], [10.0, 10.0]);
        assert_eq!(far.around(), [36, 38, 40]);
    }
}
