//! The page of this preset.

mod parts;
pub(super) mod places;
mod tables;

use super::answers;
use super::cell::{HdtvCell, HdtvPart, OtherWork};
use super::defects;
use super::load;
use super::plan::Paper3Plan;
use super::result::{HdtvCellRuns, HdtvRun, Paper3Result};
use crate::host::Conditions;
use crate::preset::{Figure, PresetPage, PresetWords};
use crate::report::Section;
use crate::study::Column;

impl PresetPage for Paper3Plan {
    type Run = HdtvRun;

    const WORDS: PresetWords = PresetWords {
        title: "Paper 3, measured again",
        paper: "Jo, Seok, Lee, Byeon (2006), Figures 2 and 4 to 7, Tables 1 and 2",
        scaled: "Lines",
        compared: "MTU 9000 against 1500, other programs and topics against Thalweg by RTP, all else alike; runs of the same round paired",
        not_better: "What shows a smaller share of its frames",
        programs: "Programs",
        of_its_own: "Each run has hosts, link and programs of its own.",
    };
    const OVERVIEW: &'static [Column<HdtvCell, HdtvRun>] = &tables::OVERVIEW;
    const TOLD: &'static [(&'static str, Figure<Paper3Plan>)] = &[
        ("goodput_mbit", answers::GOODPUT),
        ("lost", answers::LOST),
        ("cpu", answers::CPU),
        ("fps", answers::FPS),
        ("trip_p50_us", answers::TRIP_P50),
    ];

    fn conditions(run: &HdtvRun) -> &Conditions {
        &run.conditions
    }

    fn refused(run: &HdtvRun) -> &[String] {
        &run.refused
    }

    fn section(result: &Paper3Result, part: HdtvPart) -> Section {
        parts::section(result, part)
    }

    /// The paper's defects.
    fn closing(result: &Paper3Result) -> Option<Section> {
        Some(Section {
            title: "Where the paper contradicts itself, or says too much".to_owned(),
            lead: "Its statements with what is right; figures are those of the runs above.".to_owned(),
            seen: defects::sentences(result),
            tables: vec![places::table()],
            ..Section::default()
        })
    }

    fn method(result: &Paper3Result) -> Vec<String> {
        let plan = &result.plan;
        let (width, lines) = plan.size();
        vec![
            format!(
                "The picture has {width} × {lines} pixels, 4:2:2 of 10 bits, 30000/1001 frames a second: {:.0} Mbit/s. All programs send one frame \
                 again and again, progressive. Nothing lost is sent again by RTP, but where a cell says so.",
                plan.picture_mbit()
            ),
            "Sender and receiver are processes in network namespaces of one machine, joined by a veth pair; where frames are gathered or lost, \
             by a relay, which takes processor time of its own."
                .to_owned(),
            "The load is that of the programs, in shares of one processor, in windows of a second whose edges are 10 ms exact; σ is the deviation \
             of these windows, and that of the frame rate likewise. Much of a veth's receiving is done in the sender's time. The paper's load is \
             that of a whole host. The kernel's own work for the network does not count as other work."
                .to_owned(),
            "What GStreamer and FFmpeg lost is the difference of the kernels' counts of datagrams at both ends. FFmpeg tells its frames ten times a \
             second, so that its last three may be missing.".to_owned(),
            "Where frames are lost, the relay counts the packets of a picture by RTP that came and those that it lost: those of its payload \
             type to its port, without repetitions and reports. What the receiver got before repair has to be all but those lost; what it \
             missed has to be what was lost between the first and the last one that passed. A run in which something got lost in other places tells nothing of \
             that. Address resolution and the sender's farewell are not lost."
                .to_owned(),
            beside(result),
            format!(
                "Runs take turns in an order from the seed {}. A figure is the median of the runs, with its exact 95 % interval from eight runs on; \
                 below that the range from the least to the largest run. A disturbed run is repeated up to three times, with --quick never.",
                plan.seed
            ),
            "The paper's hosts were two machines on a switch, with NICs of 10 Gbit/s on PCI-X: compare the shape, not the figures.".to_owned(),
        ]
    }
}

/// What a busy program is.
fn beside(result: &Paper3Result) -> String {
    let compiles = |cell: &HdtvCellRuns| {
        cell.cell.traffic.picture().is_some_and(|case| case.beside == OtherWork::Compiler) && !cell.runs.is_empty()
    };
    let compiler = result.plan.site.compiler.as_ref().filter(|_| result.cells.iter().any(compiles));
    let compiler = compiler.map_or_else(String::new, |version| {
        format!(
            " For five minutes it is a compiler ({version}), which compiles a file of {} functions at -O2 again and again.",
            load::FUNCTIONS
        )
    });
    format!(
        "A busy program is an endless loop of the shell, one for each CPU, at the priority of the picture's ends.{compiler}"
    )
}
