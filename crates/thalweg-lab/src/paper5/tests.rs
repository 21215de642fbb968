use std::time::Duration;

use serde_json::json;
use thalweg_coap::scheduler::controller::ControlLaw;

use super::*;
use crate::coap_load::{LoadCounts, LoadPlan, Phase};
use crate::fixtures::check_contains;
use crate::host::{Conditions, Environment};
use crate::length::Length;
use crate::preset::{ContenderFacts, PresetPlan, page, to_text};
use crate::statistics::{Verdict, runs_needed};
use crate::study::{CellFailure, CellResult, StudyCell, within};
use thalweg_testing::pages::{check_html, check_offline};

fn plan(form: Length) -> Paper5Plan {
    Paper5Plan::new(form, 1, ServerSite { cpus: 8, has_quotas: true })
}

fn cells_of(plan: &Paper5Plan, figure: PaperFigure) -> Vec<ServerCell> {
    plan.cells().into_iter().filter(|cell| cell.figure == figure).collect()
}

/// The sizes of the fixed pools of a part, each once.
fn sizes(plan: &Paper5Plan, figure: PaperFigure) -> Vec<usize> {
    let fixed = cells_of(plan, figure).into_iter().filter_map(|cell| match cell.contender {
        Contender::Thalweg(ControlLaw::Fixed(size)) => Some(size),
        _ => None,
    });
    fixed.collect::<std::collections::BTreeSet<usize>>().into_iter().collect()
}

#[test]
fn the_full_plan_has_the_papers_cells() {
    let plan = plan(Length::Full);
    assert_eq!(sizes(&plan, PaperFigure::Threads), [1, 2, 4]);
    assert_eq!(sizes(&plan, PaperFigure::Pools), [1, 2, 3, 4, 5, 7, 10, 20, 40, 60, 80, 100, 150, 200]);
    assert_eq!(sizes(&plan, PaperFigure::Course), [1, 2, 3, 4, 5, 6, 7]);
    let clients = cells_of(&plan, PaperFigure::Clients).into_iter().filter_map(|cell| match cell.load {
        RequestLoad::Open { clients, rate: 10.0, .. } => Some(clients),
        _ => None,
    });
    let clients: std::collections::BTreeSet<u32> = clients.collect();
    assert_eq!((clients.first(), clients.last(), clients.len()), (Some(&1), Some(&10_000), 12));
    let is_flood = |cell: &ServerCell| matches!(cell.load, RequestLoad::Open { flood: Some((100_000, _)), .. });
    assert!(cells_of(&plan, PaperFigure::Flood).iter().any(is_flood));
}

#[test]
fn the_usual_plan_fits_into_a_hundred_minutes_with_runs_for_each_verdict() {
    for site in [ServerSite { cpus: 2, has_quotas: true }, ServerSite { cpus: 8, has_quotas: true }] {
        let plan = Paper5Plan::new(Length::Usual, 1, site);
        let cells = plan.cells();
        let all: f64 = cells.iter().map(|cell| f64::from(plan.runs_of(cell)) * plan.seconds_of(cell)).sum();
        assert!(all < 90.0 * 60.0, "{} min leave time for runs that are repeated", all / 60.0);
        assert!(plan.terms().budget < Some(Duration::from_secs(6_000)));
        let results: Vec<ServerCellRuns> = cells.iter().cloned().map(CellResult::new).collect();
        let judged = results.iter().filter(|cell| ServerCell::baseline(&results, cell).is_some()).count();
        assert!(plan.runs as usize >= runs_needed(judged), "{judged} comparisons with {} runs", plan.runs);
        for figure in PaperFigure::ALL.map(|(figure, _)| figure) {
            assert!(cells.iter().any(|cell| cell.figure == figure), "{figure:?}");
        }
        let judged = |figure| cells.iter().filter(|cell| cell.figure == figure && cell.is_judged).count();
        let figures = [PaperFigure::Pools, PaperFigure::Clients, PaperFigure::Sizes, PaperFigure::Platforms];
        assert!(figures.into_iter().all(|figure| judged(figure) > 1), "fixed against adaptive at saturation");
    }
}

#[test]
fn the_quick_plan_fits_into_ten_minutes() {
    let plan = plan(Length::Quick);
    let once = Paper5Plan { runs: 1, ..plan.clone() };
    assert!(once.expected() < Duration::from_secs(480), "{:?}", once.expected());
    assert!(plan.terms().budget < Some(Duration::from_secs(600)), "later rounds are left out when it takes longer");
    let figures: std::collections::BTreeSet<PaperFigure> = plan.cells().iter().map(|cell| cell.figure).collect();
    assert_eq!(figures.len(), PaperFigure::ALL.len(), "no part is left out");
    let is_young = |cell: &ServerCell| {
        let compiles = matches!(cell.contender, Contender::Peer(CoapPeer::Californium, _));
        compiles && matches!(cell.load, RequestLoad::Open { clients: 1_001.., .. })
    };
    assert!(!plan.cells().iter().any(is_young), "it would be judged while it compiles");
}

#[test]
fn figure_5_has_the_papers_processors_as_far_as_there_are_any_and_a_quota() {
    let rooms = |cpus, has_quotas| {
        let plan = Paper5Plan::new(Length::Usual, 1, ServerSite { cpus, has_quotas });
        let rooms = cells_of(&plan, PaperFigure::Pools).into_iter().map(|cell| cell.room.to_string());
        let mut rooms: Vec<String> = rooms.collect();
        rooms.dedup();
        (rooms, plan.left_out())
    };
    let quota = "100 % of a CPU".to_owned();
    assert_eq!(rooms(4, true), (vec!["1 CPU".to_owned(), "2 CPUs".to_owned(), "4 CPUs".to_owned(), quota], Vec::new()));
    let (few, left_out) = rooms(1, false);
    assert_eq!(few, ["1 CPU"]);
    assert!(left_out[0].starts_with("Figure 5 on 2 and 4 CPUs: this machine has 1"), "{left_out:?}");
    assert!(left_out[1].starts_with("Figure 12 and the quota of Figure 5: control groups"), "{left_out:?}");
}

#[test]
fn laws_that_are_named_are_those_of_every_figure() {
    let laws = vec![ControlLaw::Fixed(9), ControlLaw::QueueDelay];
    for form in [Length::Quick, Length::Usual, Length::Full] {
        let plan = Paper5Plan { laws: laws.clone(), ..plan(form) };
        for figure in PaperFigure::ALL.map(|(figure, _)| figure) {
            let ours = cells_of(&plan, figure).into_iter().filter_map(|cell| match cell.contender {
                Contender::Thalweg(law) => Some(law),
                Contender::Peer(..) => None,
            });
            let mut ours: Vec<ControlLaw> = ours.collect();
            ours.truncate(2);
            assert_eq!(ours, laws, "{figure:?}");
        }
    }
}

#[test]
fn overload_brings_capacity_with_it_and_the_command_says_what_was_chosen() {
    let plan = Paper5Plan { figures: vec![PaperFigure::Overload], peers: Vec::new(), ..plan(Length::Quick) };
    let cells = plan.cells();
    let overloaded: Vec<&ServerCell> = cells.iter().filter(|cell| cell.figure == PaperFigure::Overload).collect();
    assert_eq!(overloaded.len(), 2, "the greeting and a handler that computes");
    for cell in overloaded {
        let is_known =
            |one: &ServerCell| one.is_capacity() && (one.contender, one.handler) == (cell.contender, cell.handler);
        assert_eq!(cells.iter().filter(|one| is_known(one)).count(), 1, "{cell}");
    }
    let plan = Paper5Plan { figures: vec![PaperFigure::Ramp], laws: vec![ControlLaw::Fixed(9)], ..plan };
    assert_eq!(plan.command(), "thalweg lab run paper5 --quick --seed 1 --figures ramp --peers none --laws fixed:9");
}

#[test]
fn names_lead_to_what_they_name() {
    for (figure, names) in PaperFigure::ALL {
        assert!(names.iter().all(|name| PaperFigure::named(name) == Some(figure)));
        assert_eq!(figure.name(), names[0]);
    }
    for contender in plan(Length::Full).cells().into_iter().map(|cell| cell.contender) {
        assert_eq!(Contender::try_from(contender.to_string()), Ok(contender));
    }
    assert!(law_named("vta-author").is_err_and(|error| error.contains("\"vta-authors\"")));
    assert!(Contender::try_from("thalweg none".to_owned()).is_err());
}

/// A run that served so many of so many requests a second, by half-second windows `(offered, served, p50 in µs)`, with lines
/// `(second, threads, queue, came, handled)` of its pool.
pub(super) fn run_of(round: u32, windows: &[(u64, u64, f64)], lines: &[(f64, u64, u64, u64, u64)]) -> Run {
    let (offered, served) = windows.iter().fold((0, 0), |(offered, served), one| (offered + one.0, served + one.1));
    let seconds = windows.len() as f64 / 2.0;
    let window = |(index, (offered, served, p50)): (usize, &(u64, u64, f64))| {
        json!({ "start_s": index as f64 / 2.0, "seconds": 0.5, "offered": offered, "served": served, "rejected": 0,
            "lost": offered - served, "answered": served,
            "latency": { "min_us": 1.0, "p50_us": p50, "p90_us": null, "p99_us": null, "p999_us": null, "max_us": 9e6 } })
    };
    let load = json!({
        "schema": crate::coap_load::SCHEMA,
        "plan": LoadPlan::new(([127, 0, 0, 1], 5683).into()),
        "seconds": seconds,
        "offered_per_s": offered as f64 / seconds,
        "served_per_s": served as f64 / seconds,
        "counts": LoadCounts { offered, sent: offered, served, lost: offered - served, ..LoadCounts::default() },
        "latency": { "min_us": 10.0, "p50_us": 100.0, "p90_us": 200.0, "p99_us": 400.0, "p999_us": null, "max_us": 900.0 },
        "windows": windows.iter().enumerate().map(window).collect::<Vec<_>>(),
        "generator": { "cpu_s": 0.1, "busy": 0.2, "slip_p99_us": null, "slip_max_us": null, "generator_limited": false, "message_ids_reused": false },
        "generator_capacity": null,
        "server": { "cpu_s": 0.5, "served_per_cpu_s": served as f64 / 0.5, "resident_kib": 9_000 },
    });
    let line = |(at_s, threads, queue, came, handled): &(f64, u64, u64, u64, u64)| ServerLine {
        at_s: *at_s,
        received: *came,
        pools: vec![PoolLine {
            law: "x".to_owned(),
            threads: *threads,
            queue: *queue,
            accepted: *came,
            completed: *handled,
            busy_s: *handled as f64 * 0.002,
            ..PoolLine::default()
        }],
        ..ServerLine::default()
    };
    Run {
        round,
        load: serde_json::from_value(load).expect("a load"),
        server: ServerUsage { resident_max_mib: 12.0, threads_max: 9, energy_j: None },
        lines: lines.iter().map(line).collect(),
        conditions: Conditions::default(),
    }
}

/// A step from 1,000 to 6,000 and back, a second each.
fn step() -> RequestLoad {
    let phase = |rate| Phase { rate, duration: Duration::from_secs(1) };
    RequestLoad::Phases { clients: 10, phases: [1_000.0, 6_000.0, 1_000.0].map(phase).to_vec() }
}

/// A law that reaches `high` threads in the high phase, serves it `soon` or not at all, and ends with `end`.
fn step_run(high: u64, end: u64, is_soon: bool) -> Run {
    let served = if is_soon { 3_000 } else { 500 };
    let windows =
        [(500, 500, 2e3), (500, 500, 2e3), (3_000, 500, 3e5), (3_000, served, 3e3), (500, 500, 2e3), (500, 500, 2e3)];
    let lines = [
        (0.5, 3, 0, 500, 500),
        (1.5, high, 900, 4_000, 3_000),
        (2.0, high, 0, 7_000, 6_900),
        (2.9, end, 0, 7_900, 7_900),
        (3.5, 99, 0, 7_900, 7_900),
    ];
    run_of(0, &windows, &lines)
}

#[test]
fn a_step_is_described_by_when_it_was_met_and_by_the_threads() {
    let figures = ramp::figures(&step_run(16, 3, true), &step()).expect("phases");
    assert_eq!(
        (figures.threads_max, figures.threads_high, figures.threads_end),
        (Some(16), Some(16), Some(3)),
        "not after the end"
    );
    assert_eq!((figures.caught_up_s, figures.queue_max, figures.after_s), (Some(0.5), 900, 1.0));
    assert!(figures.needed.is_some_and(|needed| (needed - 15.0).abs() < 1e-9), "6,000/s of 2 ms at 80 %: {figures:?}");
    assert!((figures.served - 3_500.0 / 6_000.0).abs() < 1e-9);
    assert_eq!(ramp::figures(&step_run(4, 4, false), &step()).expect("phases").caught_up_s, None);
    assert_eq!(ramp::behind(&step_run(16, 3, true))[1], (1.5, 1_000.0));
    assert_eq!(ramp::rates(&step_run(16, 3, true))[0], (1.5, [3_500.0, 2_500.0]));
}

fn result_of(cells: Vec<ServerCellRuns>) -> Paper5Result {
    Paper5Result {
        schema: Paper5Result::SCHEMA.to_owned(),
        plan: plan(Length::Usual),
        started_unix_s: 0,
        environment: Environment::read(),
        conditions: Conditions::default(),
        contenders: vec![ContenderFacts { name: "Thalweg".to_owned(), version: "0".to_owned() }],
        missing: vec![crate::preset::Missing {
            what: "the CoAP server with libcoap".into(),
            why: "a <b>".into(),
            remedy: "c".into(),
        }],
        left_out: Vec::new(),
        cells,
        differences: Vec::new(),
        failures: Vec::new(),
    }
}

fn cell_of(
    figure: PaperFigure,
    contender: Contender,
    handler: ServerWork,
    load: RequestLoad,
    runs: Vec<Run>,
) -> ServerCellRuns {
    let cell = ServerCell { figure, contender, handler, load, room: ServerRoom::Cpus(1), is_judged: true };
    CellResult { runs, ..CellResult::new(cell) }
}

fn step_cell(law: ControlLaw, run: Run) -> ServerCellRuns {
    cell_of(PaperFigure::Ramp, Contender::Thalweg(law), ServerWork::Blocking(2), step(), vec![run])
}

#[test]
fn what_is_said_of_the_equations_follows_from_the_runs() {
    let said = |cells| verdicts::equations(&result_of(cells)).join("\n");
    let as_read = said(vec![
        step_cell(ControlLaw::VtaPrinted, step_run(8, 8, false)),
        step_cell(ControlLaw::Vta, step_run(16, 3, true)),
    ]);
    assert!(as_read.contains("never shrinks; and so it was: 8 threads at most, and 8 still there 1.00 s"), "{as_read}");
    assert!(
        as_read.contains("vta-printed: Equation (2)") && as_read.contains("did not meet the step and left 83.3 %"),
        "{as_read}"
    );
    assert!(as_read.contains("met the step within a second, with 16 threads of 15.0 that were needed"), "{as_read}");
    let other = said(vec![step_cell(ControlLaw::VtaPrinted, step_run(8, 2, false))]);
    assert!(other.contains("should never shrink; here it went from 8 threads to 2"), "{other}");
    assert_eq!(said(Vec::new()), "", "nothing is said of what was not measured");
}

/// A run of half a second that served `served` requests.
fn plain(served: u64) -> Vec<Run> {
    (0..3).map(|round| run_of(round, &[(10_000, served + u64::from(round), 1e2)], &[])).collect()
}

#[test]
fn the_best_pool_and_the_price_of_a_hand_over_are_computed() {
    let pool = |law, served| {
        cell_of(
            PaperFigure::Pools,
            Contender::Thalweg(law),
            ServerWork::Short,
            RequestLoad::Closed { clients: 1, outstanding: 1 },
            plain(served),
        )
    };
    let seen = |inline| {
        let cells = vec![
            pool(ControlLaw::Inline, inline),
            pool(ControlLaw::Fixed(4), 5_000),
            pool(ControlLaw::Fixed(200), 2_000),
        ];
        verdicts::pools_seen(&result_of(cells)).join("\n")
    };
    let text = seen(9_998);
    assert!(text.contains("fixed:4 served most, 10,000/s, fixed:200 40.0 % of that, inline 200 % of that"), "{text}");
    assert!(text.contains("on 1 CPU") && text.contains("the paper's best is 4"), "{text}");
    assert!(seen(4_000).contains("inline 80.0 % of that"));
}

#[test]
fn what_the_following_law_gains_on_a_slow_machine_is_told_beside_the_papers_gain() {
    let cell = |law, served| {
        let load = RequestLoad::Open { clients: 5_000, rate: 10.0, bytes: None, flood: None };
        let runs = plain(served);
        let mut cell = cell_of(PaperFigure::Platforms, Contender::Thalweg(law), ServerWork::Computing(20), load, runs);
        cell.cell.room = ServerRoom::Quota(25);
        cell
    };
    let cells = vec![cell(ControlLaw::Fixed(4), 4_999), cell(ControlLaw::Vta, 5_999)];
    let seen = verdicts::platforms_seen(&result_of(cells));
    assert_eq!(seen[0], "On 25 % of a CPU vta served 120 % of what fixed:4 did.");
    assert!(seen[1].contains("119, 112, 113 and 113 %"), "{seen:?}");
    assert!(verdicts::platforms_seen(&result_of(Vec::new())).is_empty());
}

#[test]
fn californium_with_and_without_the_detection_of_duplicates_is_told_in_ranges() {
    let cell = |deduplication, served| {
        let load = RequestLoad::Open { clients: 10_000, rate: 10.0, bytes: None, flood: None };
        cell_of(
            PaperFigure::Clients,
            Contender::Peer(CoapPeer::Californium, deduplication),
            ServerWork::Greeting,
            load,
            plain(served),
        )
    };
    let cells = vec![cell(Deduplication::Shipped, 2_000), cell(Deduplication::Off, 8_000)];
    let text = verdicts::clients_seen(&result_of(cells)).join("\n");
    assert!(
        text.contains("served 4,000/s (range 4,000 to 4,000) with the detection of duplicates and 16,000/s (range 16,000 to 16,000) without"),
        "{text}"
    );
    assert!(!text.contains("price") && !text.contains("reason"), "two to four runs tell no cause: {text}");
}

#[test]
fn a_server_that_failed_with_the_most_clients_has_no_mean_over_many() {
    let (figure, contender) = (PaperFigure::Clients, Contender::Thalweg(ControlLaw::Vta));
    let load = |clients| RequestLoad::Open { clients, rate: 10.0, bytes: None, flood: None };
    let cell = |clients, runs| cell_of(figure, contender, ServerWork::Greeting, load(clients), runs);
    let mean = |cells| answers::mean_of_many_clients(&result_of(cells), contender).map(|mean| mean.estimate);
    assert_eq!(mean(vec![cell(10_000, plain(2_999)), cell(1_000, plain(999)), cell(9, plain(9))]), Some(4_000.0));
    assert_eq!(mean(vec![cell(10_000, Vec::new()), cell(1_000, plain(999))]), None);
}

#[test]
fn a_flood_that_costs_time_is_not_called_unnoticed() {
    let cell = |flood: Option<(u32, f64)>, p99_us: f64| {
        let load = RequestLoad::Open { clients: 100, rate: 10.0, bytes: None, flood };
        let mut runs = plain(5_000);
        runs.iter_mut().for_each(|run| run.load.latency.p99_us = Some(p99_us));
        cell_of(PaperFigure::Flood, Contender::Thalweg(ControlLaw::Vta), ServerWork::Greeting, load, runs)
    };
    let seen = verdicts::flood_seen(&result_of(vec![cell(None, 400.0), cell(Some((100_000, 5_000.0)), 90_000.0)]));
    let expect = "honest clients were answered as often beside the flood as without it; their median took 0.100 ms beside it and 0.100 ms \
                  without, their 99th percentile 90.0 ms beside it and 0.400 ms without.";
    assert!(seen[0].contains(expect), "{seen:?}");
}

#[test]
fn a_median_over_the_runs_needs_a_figure_of_every_run() {
    let mut runs = plain(5_000);
    runs[0].load.latency.p99_us = None;
    let load = RequestLoad::Closed { clients: 64, outstanding: 4 };
    let cell = cell_of(PaperFigure::Capacity, Contender::Thalweg(ControlLaw::Vta), ServerWork::Greeting, load, runs);
    assert_eq!((answers::median_of(&cell, answers::P99), answers::median_of(&cell, answers::P50)), (None, Some(100.0)));
}

#[test]
fn an_overload_that_the_generator_could_not_make_says_nothing_of_the_server() {
    let ours = Contender::Thalweg(ControlLaw::Vta);
    let (closed, twice) =
        (RequestLoad::Closed { clients: 64, outstanding: 4 }, RequestLoad::Overload { clients: 9, factor: 2.0 });
    let seen = |is_limited| {
        let mut runs = plain(4_000);
        runs[0].load.generator.generator_limited = is_limited;
        let full = cell_of(PaperFigure::Capacity, ours, ServerWork::Greeting, closed.clone(), plain(5_000));
        let over = cell_of(PaperFigure::Overload, ours, ServerWork::Greeting, twice.clone(), runs);
        verdicts::overload_seen(&result_of(vec![full, over])).join("\n")
    };
    assert!(seen(false).starts_with("thalweg vta kept 80.0 % of its capacity"), "{}", seen(false));
    assert!(seen(true).contains("says nothing of the server"), "{}", seen(true));
}

#[test]
fn the_page_shows_every_part_and_what_is_missing() {
    let plan = plan(Length::Quick);
    let runs = |cell: &ServerCell| match cell.load {
        RequestLoad::Phases { .. } => vec![step_run(16, 3, true)],
        _ => plain(5_000),
    };
    let cells: Vec<ServerCellRuns> =
        plan.cells().into_iter().map(|cell| CellResult { runs: runs(&cell), ..CellResult::new(cell) }).collect();
    let (name, reason) = (cells[0].name.clone(), "it <died>".to_owned());
    let failures = vec![CellFailure { cell: 0, name, round: 1, reason }];
    let result = Paper5Result { failures, differences: within(&cells), ..result_of(cells) };
    let text = to_text(&result);
    let html = page(&result).to_html();
    check_html(&html);
    check_offline(&html);
    check_contains(
        &text,
        &[
            "Figures 2 to 4",
            "Figure 5",
            "Figures 6 and 7",
            "Figures 9 and 10",
            "Figure 11",
            "Figure 12",
            "Capacity",
            "Overload",
            "A flood",
            "A blocking load",
            "Differences from the equations",
            "the CoAP server with libcoap",
            "it <died>",
            "10,000 (range 10,000 to 10,000)",
        ],
    );
    assert!(html.contains("other programs and a hypervisor together took more than 1 % of the processor time"));
    assert!(html.contains("it &lt;died&gt;") && html.contains("CPU µs an answer"));
    let again: Paper5Result = serde_json::from_str(&serde_json::to_string(&result).expect("JSON")).expect("a result");
    assert_eq!(again, result, "results.json holds all that the page shows");
}

#[test]
fn a_contender_that_serves_more_at_the_same_load_is_told_from_eight_rounds_on() {
    let load = RequestLoad::Closed { clients: 64, outstanding: 4 };
    let cell = |contender, served: u64, rounds: u32| {
        let runs = (0..rounds).map(|round| run_of(round, &[(10_000, served + u64::from(round), 1e2)], &[])).collect();
        cell_of(PaperFigure::Capacity, contender, ServerWork::Greeting, load.clone(), runs)
    };
    let (ours, peer) =
        (Contender::Thalweg(ControlLaw::Vta), Contender::Peer(CoapPeer::Libcoap, Deduplication::Shipped));
    let told = |rounds| {
        let cells = vec![cell(ours, 9_000, rounds), cell(peer, 4_000, rounds)];
        let result = Paper5Result { differences: within(&cells), ..result_of(cells) };
        let of =
            |quantity: &str| result.differences.iter().find(|one| one.quantity == quantity).expect("compared").verdict;
        (of("served a second"), of("served, share of offered"), of("response p50, µs"), to_text(&result))
    };
    let (rate, share, latency, text) = told(8);
    assert_eq!((rate, share), (Verdict::Worse, Verdict::Worse));
    assert_eq!(latency, Verdict::Equivalent, "the same in every run");
    assert!(text.contains("Against Thalweg with its usual law") && text.contains("libcoap"), "{text}");
    let (rate, .., text) = told(5);
    assert_eq!(rate, Verdict::Inconclusive);
    assert!(text.contains("Not judged: served, share of offered"), "{text}");
}

#[test]
fn a_generator_at_its_limit_compares_no_servers() {
    let load = RequestLoad::Closed { clients: 64, outstanding: 4 };
    let cell = |contender, limited: u32| {
        let run = |round: u32| {
            let mut run = run_of(round, &[(10_000, 9_000, 1e2)], &[]);
            run.load.generator.generator_limited = round < limited;
            run
        };
        let runs = (0..12).map(run).collect();
        cell_of(PaperFigure::Capacity, contender, ServerWork::Greeting, load.clone(), runs)
    };
    let (ours, peer) =
        (Contender::Thalweg(ControlLaw::Vta), Contender::Peer(CoapPeer::Libcoap, Deduplication::Shipped));
    let told = |limited| {
        let of =
            within(&[cell(ours, 0), cell(peer, limited)]).into_iter().find(|one| one.quantity == "served a second");
        of.map(|one| (one.verdict, one.reason)).expect("compared")
    };
    assert_eq!(told(0).0, Verdict::Equivalent);
    assert_eq!(told(4).0, Verdict::Equivalent, "eight rounds are left");
    let reason = "fewer than 8 rounds in which the generator was not at its own limit".to_owned();
    assert_eq!(told(5), (Verdict::Inconclusive, Some(reason)));
}

#[test]
fn counts_of_a_run_have_to_add_up() {
    let run = run_of(0, &[(1_000, 900, 1e2)], &[]);
    assert_eq!(run.load.check(), Ok(()));
    let mut altered = run.clone();
    altered.load.served_per_s *= 1.01;
    assert_eq!(altered.load.check(), Err("served_per_s does not follow from its count".to_owned()));
    let mut altered = run;
    altered.load.counts.served += 1;
    assert!(altered.load.check().is_err());
}
