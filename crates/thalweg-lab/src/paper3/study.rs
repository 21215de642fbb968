//! The preset as an experiment that a study repeats: a run has hosts and programs of its own.

use std::path::PathBuf;

use thalweg_video::picture::TestPicture;

use super::answers;
use super::cell::HdtvCell;
use super::peer::VideoPeer;
use super::plan::Paper3Plan;
use super::result::HdtvRun;
use super::run::{self, HdtvRecord, Stage, TemporaryFolder};
use super::topics;
use crate::error::LabError;
use crate::host::may_make_namespaces;
use crate::preset::{Missing, Preset, PresetStudy, PresetTurn};
use crate::process::{Launcher, Stop};
use crate::study::{CellResult, Measure, Side, StudyCell, StudyRun};

/// The plan with its cells.
pub(crate) type HdtvStudy = PresetStudy<Paper3Plan>;

/// A frame of the picture, as it lies in packets.
pub(crate) struct PictureFolder(TemporaryFolder);

impl PictureFolder {
    fn frame(&self) -> PathBuf {
        self.0.0.join("frame.raw")
    }
}

/// Shares of a processor that sender and receiver use.
pub(super) const BOTH_ENDS: Measure<HdtvRun> =
    Measure { name: "CPU of both ends", of: answers::CPU, more_is: Side::Worse, margin: 1.03 };

impl StudyRun for HdtvRun {
    const MEASURES: &'static [Measure<HdtvRun>] = &[
        Self::DONE,
        Measure { name: "throughput, Mbit/s", of: answers::GOODPUT, more_is: Side::Better, margin: 1.03 },
        BOTH_ENDS,
        Measure { name: "round trip p50, µs", of: answers::TRIP_P50, more_is: Side::Worse, margin: 1.03 },
    ];
    /// A thousandth of the frames matters. What a stream as fast as possible loses is no fault of its own.
    const DONE: Measure<HdtvRun> = Measure {
        name: "frames shown, share of due",
        of: |run| run.stream.map(|_| 1.0).or_else(|| answers::SHOWN(run)),
        more_is: Side::Better,
        margin: 1.001,
    };

    fn round(&self) -> u32 {
        self.round
    }

    fn is_disturbed(&self) -> bool {
        self.conditions.is_disturbed()
    }
}

impl StudyCell for HdtvCell {
    /// MTU 1500 with all else alike, or Thalweg by RTP on the same link; none for a cell that gets no verdict.
    fn baseline<'a, R>(
        cells: &'a [CellResult<HdtvCell, R>],
        cell: &CellResult<HdtvCell, R>,
    ) -> Option<&'a CellResult<HdtvCell, R>> {
        let found = cells.iter().find(|other| other.cell.is_baseline_of(&cell.cell));
        found.filter(|baseline| cell.cell.is_judged && !std::ptr::eq(*baseline, cell))
    }
}

impl Preset for Paper3Plan {
    type Record = HdtvRecord;
    type Site = PictureFolder;

    const TEXT_SCHEMA: &'static str = "thalweg.hdtv/1";

    /// Runs of minutes after the short ones of their round: where the time does not suffice, they are what is missing last.
    fn stage(&self, cell: &HdtvCell) -> u64 {
        u64::from(cell.is_long())
    }

    fn facts_of(peer: VideoPeer, _launcher: &Launcher) -> Result<Vec<(&'static str, String)>, String> {
        Ok(vec![("version", peer.version()?)])
    }

    fn missing(peer: VideoPeer, why: String) -> Missing {
        Missing { what: format!("the picture by {peer}"), why, remedy: peer.remedy().to_owned() }
    }

    fn prepare(&self, _launcher: &Launcher, _stop: &Stop) -> Result<PictureFolder, LabError> {
        if !may_make_namespaces() {
            return Err(thalweg_host::NamespaceError::NotRoot.into());
        }
        let folder = PictureFolder(TemporaryFolder::new()?);
        let format = topics::format(self.size())?;
        let mut octets = vec![0; format.frame_octets()];
        TestPicture::new(format).map_err(LabError::here)?.draw(0, &mut octets);
        std::fs::write(folder.frame(), octets).map_err(LabError::here)?;
        Ok(folder)
    }

    fn make(&self, cell: &HdtvCell, turn: &PresetTurn<'_, Paper3Plan>) -> Result<HdtvRecord, LabError> {
        let frame = turn.site.own.frame();
        let stage = Stage { plan: self, launcher: turn.launcher, stop: turn.stop, frame: &frame };
        run::make(cell, turn.round, turn.chance, &stage)
    }

    fn cell_of(record: &HdtvRecord) -> &HdtvCell {
        &record.cell
    }

    fn check(record: &HdtvRecord) -> Result<(), String> {
        record.check()
    }

    fn figures(record: HdtvRecord) -> Result<HdtvRun, String> {
        record.figures()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::length::Length;
    use crate::paper3::cell::HdtvPart;
    use crate::paper3::result::HdtvCellRuns;
    use crate::paper3::site::HdtvSite;
    use crate::preset::PresetPlan;
    use crate::preset::checks::{check_refused, check_text};

    fn plan() -> Paper3Plan {
        Paper3Plan::new(Length::Usual, 7, HdtvSite { cpus: 2, has_namespaces: true, nics: Vec::new(), compiler: None })
    }

    #[test]
    fn a_plan_is_what_its_text_says() {
        let parts = vec![HdtvPart::Rtt, HdtvPart::Topics];
        check_text(Paper3Plan { parts, peers: vec![VideoPeer::Ffmpeg], runs: 8, scale: 0.5, ..plan() });
    }

    #[test]
    fn a_text_that_is_no_plan_is_refused_with_its_place() {
        let check = |before: &str, after: &str, expect: &str| check_refused(&plan(), before, after, expect);
        check("scale", "scales", "plan.toml:7:1: unknown field `scales`");
        check("\"topics\"", "\"topic\"", "unknown variant `topic`");
        check("scale = 1.0", "scale = 2.0", "scale has to be");
    }

    #[test]
    fn what_gets_a_verdict_is_compared_with_what_differs_in_one_thing() {
        let cells: Vec<HdtvCellRuns> = plan().cells().into_iter().map(CellResult::new).collect();
        let compared: Vec<(&str, &str)> = cells
            .iter()
            .filter_map(|cell| Some((HdtvCell::baseline(&cells, cell)?.name.as_str(), cell.name.as_str())))
            .collect();
        for pair in [
            ("mtu: UDP, packet by packet, MTU 1500", "mtu: UDP, packet by packet, MTU 9000"),
            ("peers: Thalweg, RTP, MTU 9000", "peers: GStreamer, RTP, MTU 9000"),
            ("topics: Thalweg, RTP, MTU 1500", "topics: Thalweg, topic, reliable, MTU 1500"),
        ] {
            assert!(compared.contains(&pair), "{pair:?} in {compared:?}");
        }
        assert!(compared.iter().all(|(baseline, cell)| baseline != cell && !cell.contains("minutes")));
        let needed = crate::statistics::runs_needed(compared.len());
        assert!(plan().runs as usize >= needed, "{} comparisons need {needed} runs", compared.len());
    }
}
