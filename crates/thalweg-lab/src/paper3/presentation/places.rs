//! Where each row of the paper stands on the page.

use Place::{Cell, Chosen, LeftOut, Part};

use crate::paper3::cell::HdtvPart;
use crate::table::Table;

/// Where something of the paper is measured again.
#[derive(Clone, Copy, Debug)]
pub(in crate::paper3) enum Place {
    /// In all cells of a part.
    Part(HdtvPart),
    /// In one cell, by its label.
    Cell(HdtvPart, &'static str),
    /// Nowhere; the note says why.
    LeftOut,
    /// The paper does not tell it; the note says what was chosen here.
    Chosen,
}

/// What the paper has or lacks, its place, and a note, which may be empty.
pub(in crate::paper3) type PaperRow = (&'static str, Place, &'static str);

/// The system, the experiments, the advice, and what is not told.
pub(in crate::paper3) const ROWS: [PaperRow; 30] = [
    (
        "1080i of 59.94 fields captured as 29.97 psf, 4:2:2 of 10 bits",
        Part(HdtvPart::Moderation),
        "sent progressive: psf has as many octets and packets in the same time, its two segments one after the other",
    ),
    ("about 1.25 Gbit/s, the active picture", Part(HdtvPart::Moderation), ""),
    ("1.485 Gbit/s, the full raster", LeftOut, "blanking holds no picture; the paper does not send it either"),
    (
        "sound, 24 bits at 48 kHz",
        LeftOut,
        "1.5 % of the rate with the 16 channels of SDI; `thalweg video` has it, without a figure here",
    ),
    ("RTP over UDP, round trip and jitter from RTCP RR", Part(HdtvPart::Moderation), ""),
    (
        "packets for MTU 9000, one each 57.8 µs",
        Cell(HdtvPart::Moderation, "as it is"),
        "8,935 to 8,945 bytes of picture each, but for the last of a frame",
    ),
    ("two frame buffers at the receiver", Part(HdtvPart::Moderation), "the playout delay is two frame times"),
    ("a kernel for one processor: 99 % of it", Cell(HdtvPart::Placement, "one CPU, MTU 9000"), "both ends on it"),
    ("hyper-threading: 3 to 7 % less load", LeftOut, "the CPUs are the machine's, and stay as they are"),
    ("NICs on PCI-X, a switch", LeftOut, "hosts of one machine, joined by a veth pair"),
    ("sysctls and queue lengths", LeftOut, "`thalweg advisor advise --profile paper-2006` has them one by one"),
    ("Figure 2: throughput against MTU", Part(HdtvPart::Mtu), ""),
    ("Figure 3: MMRBC", LeftOut, "there is no PCI-X"),
    ("Figure 4: several streams", Part(HdtvPart::Streams), "without its MMRBC"),
    ("Figure 5: round trips against size and coalescing", Part(HdtvPart::Rtt), ""),
    ("untuned: 3–4 % lost in five minutes", Cell(HdtvPart::Ladder, "untuned, five minutes"), ""),
    ("tuned: nothing lost, 1.2 points less load", Cell(HdtvPart::Moderation, "gathered for 100 µs, five minutes"), ""),
    ("Table 1: receiver's load against coalescing", Part(HdtvPart::Moderation), ""),
    ("Table 2: frames a second against coalescing", Part(HdtvPart::Moderation), ""),
    ("Figure 6: round trip against coalescing", Part(HdtvPart::Moderation), ""),
    ("Figure 7: jitter against coalescing", Part(HdtvPart::Moderation), ""),
    ("advice: static coalescing of 100 to 200 µs", Part(HdtvPart::Moderation), "beside our lowest round trip"),
    ("a light path of its own for the video", Part(HdtvPart::Coexistence), "its reason: TCP on a shared link"),
    ("UltraGrid", LeftOut, "Debian has no package; `thalweg video` takes its place, other programs stand beside it"),
    ("not told: channels of sound", Chosen, "no sound"),
    ("not told: number of runs", Chosen, "the column “runs” of each table"),
    ("not told: the sender's load in its tables", Chosen, "a column of each table with pictures"),
    ("not told: how packets get lost on the way", Chosen, "each by itself, 0.1 to 5 %, in the parts topics and bounds"),
    (
        "not told: repair of what is lost",
        Cell(HdtvPart::Bounds, "5 % of the frames lost, repaired, MTU 9000"),
        "requests and repetitions; elsewhere none by RTP",
    ),
    ("not told: more than one picture", Chosen, "one picture"),
];

/// All rows.
pub(super) fn table() -> Table {
    let all = Table::new("Where each row of the paper stands", &["the paper", "here, by part", ""]);
    let mut out = Table { words: vec![1, 2], ..all };
    out.rows.extend(ROWS.map(|(what, place, note)| vec![what.to_owned(), told(place), note.to_owned()]));
    out
}

fn told(place: Place) -> String {
    match place {
        Part(part) => part.name().to_owned(),
        Cell(part, label) => format!("{}: {label}", part.name()),
        LeftOut => "left out".to_owned(),
        Chosen => "chosen here".to_owned(),
    }
}
