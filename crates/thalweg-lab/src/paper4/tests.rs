use super::*;
use crate::length::Length;
use crate::peers::{CellMiddleware, PeerProgram};
use crate::scenario::{Load, ReliabilitySetting, Scenario, Topics};
use crate::statistics::runs_needed;

const SMALL: MachineSize = MachineSize { cores: 2, memory_bytes: 16 << 30 };
const LARGE: MachineSize = MachineSize { cores: 64, memory_bytes: 512 << 30 };
const TWO: [PeerProgram; 2] = [PeerProgram::Cyclone, PeerProgram::FastDds];

fn plan(form: Length, machine: &MachineSize, peers: &[PeerProgram]) -> Paper4Plan {
    Paper4Plan::new((form, 5), machine, peers, &[])
}

#[track_caller]
fn scenario(plan: &Paper4Plan, name: &str) -> Scenario {
    let part = plan.parts.iter().find(|part| part.name == name).unwrap_or_else(|| panic!("no part {name}"));
    Scenario::parse(name, &part.text).unwrap_or_else(|error| panic!("{error}\n{}", part.text))
}

#[test]
fn a_large_machine_measures_all_of_the_paper() {
    let plan = plan(Length::Usual, &LARGE, &TWO);
    assert_eq!(
        (plan.parts.iter().map(|part| part.name).collect::<Vec<_>>(), plan.left_out.len()),
        (PART_NAMES.to_vec(), 0)
    );
    let vendors = scenario(&plan, "vendors");
    // Two shapes, three types, two reliabilities; Thalweg and two profiles of each peer.
    assert_eq!(vendors.cells.len(), 2 * 3 * 2 * 5);
    assert!(vendors.schedule.runs.min as usize >= runs_needed(12 * 4));
    let detail = scenario(&plan, "detail");
    // 2 nodes are one shape, 8, 32 and 64 are three; 5 sizes, 2 rates; Thalweg and the paper's only middleware.
    assert_eq!(detail.cells.len(), (1 + 3 * 3) * 5 * 2 * 2);
    assert!(detail.cells.iter().all(|cell| cell.middleware.peer() != Some(PeerProgram::FastDds)));
    let nodes = |topics| {
        let own = detail.cells.iter().filter(move |cell| cell.topics == topics);
        own.map(|cell| cell.publishers + cell.subscribers).collect::<std::collections::BTreeSet<u32>>()
    };
    assert_eq!(nodes(Topics::PerPair).into_iter().collect::<Vec<_>>(), [8, 32, 64]);
    assert_eq!(nodes(Topics::PerPublisher), nodes(Topics::PerPair));
    assert!(scenario(&plan, "layers").trace.is_some());
    let executors = scenario(&plan, "executors").cells;
    let threads = |publishers: u32| {
        let own = executors.iter().filter(|cell| cell.publishers == publishers).filter_map(|cell| cell.executor);
        own.map(|executor| (executor.threads, executor.work.as_millis())).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!((threads(1), threads(31)), ([(1, 0), (1, 2)].into(), [(1, 0), (1, 2), (64, 0), (64, 2)].into()));
    assert_eq!(threads(7), threads(31));
    assert!(executors.iter().all(|cell| cell.executor.is_some()));
}

#[test]
fn a_small_machine_leaves_out_what_it_does_not_carry_and_says_so() {
    let small = plan(Length::Usual, &SMALL, &TWO);
    let told = small.left_out.join("\n");
    assert!(told.contains("detail: 1–63, 100 Hz, reliable, 2 MiB:") && told.contains("a second to deliver"), "{told}");
    let detail = scenario(&small, "detail");
    let has = |subscribers, load, rate_hz: f64| {
        let cells = detail.cells.iter().filter(|cell| cell.load == load && cell.rate_hz == rate_hz);
        cells.filter(|cell| (cell.publishers, cell.subscribers) == (1, subscribers)).count()
    };
    assert_eq!(has(31, Load::PointCloud1m, 10.0), 2);
    assert_eq!(has(63, Load::Struct16, 100.0), 2);
    assert_eq!(has(31, Load::PointCloud1m, 100.0), 0);
    let less = plan(Length::Usual, &MachineSize { memory_bytes: 1 << 30, ..SMALL }, &[]);
    assert!(less.left_out.iter().any(|line| line.contains("of memory")), "{:?}", less.left_out);
    let single = plan(Length::Usual, &MachineSize { cores: 1, ..SMALL }, &[]);
    assert!(single.left_out.iter().any(|line| line.contains("64 processes where 32")), "{:?}", single.left_out);
}

#[test]
fn the_forms_end_in_the_time_that_is_promised() {
    let seconds = |length, peers: &[PeerProgram]| plan(length, &SMALL, peers).duration().expect("scenarios").as_secs();
    assert!(seconds(Length::Usual, &TWO) < 6_000, "{}", seconds(Length::Usual, &TWO));
    assert!(seconds(Length::Full, &TWO) > seconds(Length::Usual, &TWO));
    assert!(seconds(Length::Quick, &TWO) < 600, "{}", seconds(Length::Quick, &TWO));
    assert!(seconds(Length::Quick, &PeerProgram::ALL) < 900, "{}", seconds(Length::Quick, &PeerProgram::ALL));
}

#[test]
fn parts_that_are_asked_for_are_measured_alone() {
    let wanted = ["layers".to_owned(), "fairness".to_owned()];
    let plan = Paper4Plan::new((Length::Quick, 5), &SMALL, &[PeerProgram::Cyclone], &wanted);
    assert_eq!(plan.parts.iter().map(|part| part.name).collect::<Vec<_>>(), ["layers", "fairness"]);
    assert_eq!(
        plan.left_out,
        ["vendors", "detail", "overload", "executors"].map(|name| format!("{name}: not asked for"))
    );
    assert_eq!(plan.command, "thalweg lab run paper4 --quick --seed 5 --peers cyclone --parts layers,fairness");
}

#[test]
fn the_floor_takes_part_where_nothing_is_sent_again() {
    let plan = plan(Length::Usual, &SMALL, &[PeerProgram::Raw]);
    let raw = |name| {
        let cells = scenario(&plan, name).cells;
        let own = cells.into_iter().filter(|cell| cell.middleware.peer() == Some(PeerProgram::Raw));
        own.map(|cell| cell.reliability).collect::<Vec<_>>()
    };
    assert_eq!(raw("vendors"), [Some(ReliabilitySetting::BestEffort); 6]);
    assert!(raw("overload").is_empty());
    assert!(scenario(&plan, "layers").cells.iter().all(|cell| cell.middleware == CellMiddleware::Thalweg));
}
