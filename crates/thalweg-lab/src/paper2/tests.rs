use super::result::AutoAnswer;
use super::*;
use crate::fixtures::{self, check_contains};
use crate::parts::{Part, PartResult};
use crate::peers::PeerProgram;
use crate::scenario::{Cell, Scenario};
use crate::station::Addressing;
use crate::statistics::runs_needed;
use crate::study::{CellData, CellResult, RunSummary, WireBytes};
use crate::trial::{ClosedLoopFigures, LatencyFigures, Totals};
use thalweg_testing::pages::{check_html, check_offline};

#[test]
fn every_part_is_a_scenario_with_each_way_in_turn() {
    for plan in [Paper2Plan::quick(5, 2), Paper2Plan::new(5, 2), Paper2Plan::full(5, 2), Paper2Plan::full(5, 64)] {
        for part in plan.parts() {
            let scenario = Scenario::parse(part.name, &part.text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(scenario.cells.len() % 3, 0, "{}", part.name);
            assert_eq!((scenario.seed, scenario.hosts.map(|hosts| hosts.count)), (5, Some(4)));
        }
    }
}

#[test]
fn what_a_machine_does_not_carry_is_left_out_and_said() {
    let check = |plan: Paper2Plan, counts: &[u32], omitted: usize| {
        assert_eq!((plan.counts.as_slice(), plan.omitted.len()), (counts, omitted), "{:?}", plan.omitted);
    };
    check(Paper2Plan::full(5, 64), &[1, 3, 10, 25, 50, 75], 1);
    check(Paper2Plan::full(5, 2), &[1, 3, 10, 25, 50, 75], 1);
    check(Paper2Plan::full(5, 1), &[1, 3, 10, 25], 3);
    check(Paper2Plan::quick(5, 64), &[1, 3, 10, 25], 4);
    let plan = Paper2Plan::quick(5, 1);
    assert!(plan.omitted[0].contains("50 publishers") && plan.omitted[0].contains("38 of each are the most"));
    assert!(Paper2Plan::quick(5, 2).omitted[0].contains("leave out --quick"));
    let few = Paper2Plan { overloaded: Vec::new(), closed: Vec::new(), payload_bytes: Vec::new(), ..plan };
    assert_eq!(few.parts().iter().map(|part| part.name).collect::<Vec<_>>(), ["participants", "slow-link"]);
}

#[test]
fn the_default_form_has_all_of_the_paper_within_two_hours_and_runs_enough_for_verdicts() {
    let plan = Paper2Plan::new(5, 2).with_peers(&[PeerProgram::Cyclone, PeerProgram::FastDds]);
    let parts = plan.parts();
    let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
    let all = ["participants", "overload", "perftest", "lengths", "slow-link", "snooping", "shapes", "calibration"];
    assert_eq!(names, all);
    assert!(plan.crossover);
    let scenarios: Vec<Scenario> =
        parts.iter().map(|part| Scenario::parse(part.name, &part.text).expect("one")).collect();
    let endpoints = |name: &str, is_ours: bool| {
        let place = names.iter().position(|one| *one == name).expect("a part");
        let own = scenarios[place].cells.iter().filter(|cell| cell.middleware.peer().is_none() == is_ours);
        own.map(|cell| (cell.publishers, cell.subscribers)).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(endpoints("perftest", true), [1, 3, 10, 25, 50, 75].map(|count| (count, count)).into());
    assert_eq!(endpoints("perftest", false), [1, 3, 10].map(|count| (count, count)).into());
    assert_eq!(endpoints("shapes", true), [(1, 4), (1, 7), (1, 12), (4, 3), (8, 6)].into());
    let groups = |is_closed: bool| {
        let own =
            scenarios.iter().flat_map(|scenario| &scenario.cells).filter(|cell| cell.is_closed_loop() == is_closed);
        own.filter(|cell| cell.destination == Addressing::Unicast).count()
    };
    // Three numbers about the predicted crossover are compared with the others, and a run may be disturbed.
    for comparisons in [groups(true), groups(false) + 3] {
        assert!(
            scenarios.iter().all(|scenario| scenario.schedule.runs.min as usize > runs_needed(comparisons)),
            "{comparisons}"
        );
    }
    let seconds =
        scenarios.iter().map(|scenario| scenario.duration().as_secs()).sum::<u64>() + plan.later_duration().as_secs();
    assert!(seconds < 7_200, "{seconds}");
}

#[test]
fn parts_that_are_asked_for_are_measured_alone() {
    let names = |plan: &Paper2Plan| plan.parts().iter().map(|part| part.name).collect::<Vec<_>>();
    let asked = |parts: &[&str]| {
        Paper2Plan::quick(5, 2).with_parts(&parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>())
    };
    let crossover = asked(&["crossover"]);
    assert_eq!(names(&crossover), ["calibration"]);
    assert!(crossover.crossover && crossover.later_duration().as_secs() > 60);
    assert_eq!(names(&asked(&["shapes", "snooping", "slow-link"])), ["slow-link", "snooping", "shapes"]);
    assert!(asked(&["perftest"]).omitted.contains(&"overload: not asked for".to_owned()));
    assert!(asked(&["shapes"]).later_duration().is_zero());
    assert_eq!(crossover.command, "thalweg lab run paper2 --quick --seed 5 --parts crossover");
}

#[test]
fn counts_that_are_asked_for_are_measured_alone() {
    let plan = Paper2Plan::quick(5, 2).with_counts(&[50, 75]).with_runs(3);
    assert_eq!(plan.parts().iter().map(|part| part.name).collect::<Vec<_>>(), ["participants", "overload", "perftest"]);
    for part in plan.parts() {
        let scenario = Scenario::parse(part.name, &part.text).unwrap_or_else(|error| panic!("{error}"));
        let publishers: Vec<u32> = scenario.cells.iter().map(|cell| cell.publishers).collect();
        assert_eq!(publishers, [50, 50, 50, 75, 75, 75], "{}", part.name);
    }
    assert_eq!(plan.omitted.len(), 5, "four numbers of the paper and a throughput: {:?}", plan.omitted);
    assert_eq!(plan.command, "thalweg lab run paper2 --quick --seed 5 --counts 50,75 --runs 3");
    let varied = Paper2Plan::full(5, 2).with_counts(&[1, 10]);
    assert_eq!((varied.overloaded, varied.varied), (vec![10], vec![10]));
}

/// The part with other lengths, whose ways differ as the latencies in µs say; `wire` are the bytes that each sent.
fn part(latencies_us: [f64; 3], wire: [u64; 3]) -> PartResult {
    part_like(&named("lengths"), latencies_us, wire)
}

fn named(name: &str) -> Part {
    let part = Paper2Plan::quick(5, 2).parts().into_iter().find(|part| part.name == name);
    part.unwrap_or_else(|| panic!("no part {name}"))
}

fn part_like(like: &Part, latencies_us: [f64; 3], wire: [u64; 3]) -> PartResult {
    let scenario = Scenario::parse("x", &like.text).unwrap_or_else(|error| panic!("{error}"));
    let way = |cell: &Cell| match cell.destination {
        Addressing::Unicast => 0,
        Addressing::Multicast => 1,
        Addressing::Auto => 2,
    };
    let latency = |p50_us, p99_us| LatencyFigures { p50_us: Some(p50_us), p99_us: Some(p99_us), ..Default::default() };
    let study = fixtures::study(&scenario, 8, |cell, round| {
        let (us, sent, more) = (latencies_us[way(cell)], wire[way(cell)], f64::from(round) * 0.01);
        let closed_loop = cell.is_closed_loop().then(|| ClosedLoopFigures {
            received_by_second: vec![250_000, 350_000],
            round_trip: LatencyFigures { count: 10, mean_us: us, ..latency(us, us * 2.0) },
        });
        let response = latency(us + more, us * 3.0 + more);
        let sent_per_sample = Some(sent as f64 / 1_000.0);
        RunSummary {
            closed_loop,
            received_per_s: Some(300_000.0 + f64::from(round)),
            totals: Totals { due: 1_000, in_time: 1_000, response, ..Totals::default() },
            cpu: 0.5,
            wire: Some(WireBytes { sent, received: sent, sent_per_s: None, sent_per_sample }),
            ..RunSummary::default()
        }
    });
    let raw = |cell: &Cell| {
        let mut out = CellData::default();
        (1..1_000).for_each(|rank| out.all.record((latencies_us[way(cell)] * 1e3 * f64::from(rank)) as u64));
        out
    };
    PartResult { raw: Some(scenario.cells.iter().map(raw).collect()), ..PartResult::of(like, study) }
}

/// The results of these parts, by the quick plan.
fn result_of(parts: Vec<PartResult>) -> Paper2Result {
    let Paper2Plan { omitted, command, .. } = Paper2Plan::quick(5, 2);
    let (winners, checks) = (answers::winners(&parts), answers::checks(&parts));
    Paper2Result { schema: Paper2Result::SCHEMA.to_owned(), command, parts, winners, checks, omitted }
}

fn check_of(part: PartResult) -> AutoCheck {
    answers::checks(&[part]).into_iter().find(|check| check.quantity.contains("p50")).expect("p50")
}

#[test]
fn auto_is_held_against_the_better_way_and_its_choice_is_named() {
    let near = check_of(part([100.0, 200.0, 102.0], [1_000, 300, 1_000]));
    assert!(near.answer == AutoAnswer::Yes && near.choice == "unicast", "{near:?}");
    assert!(near.text.starts_with("auto is 2.00 % behind unicast: at most 1.020 times"), "{}", near.text);
    let wrong = check_of(part([200.0, 100.0, 200.0], [1_000, 300, 990]));
    assert!(wrong.choice == "unicast" && wrong.answer == AutoAnswer::No, "{wrong:?}");
    assert!(wrong.text.contains("behind multicast: it sent by unicast, which its model"), "{}", wrong.text);
    let same_way = check_of(part([100.0, 200.0, 150.0], [1_000, 300, 1_000]));
    assert!(
        same_way.answer == AutoAnswer::No && same_way.text.contains("nothing is decided for each sample"),
        "{same_way:?}"
    );
    let ahead = check_of(part([200.0, 100.0, 90.0], [1_000, 300, 310]));
    assert!(ahead.answer == AutoAnswer::Yes && ahead.choice == "multicast", "{ahead:?}");
    assert!(ahead.text.contains("ahead of multicast"), "{}", ahead.text);
}

#[test]
fn near_is_what_all_runs_allow_and_not_what_their_middle_says() {
    let with = |of: &dyn Fn(&mut CellResult)| {
        let mut part = part([100.0, 200.0, 102.0], [1_000, 300, 1_000]);
        part.study.cells.iter_mut().filter(|cell| cell.cell.destination == Addressing::Auto).for_each(of);
        check_of(part).answer
    };
    assert_eq!(with(&|_| ()), AutoAnswer::Yes);
    let far_in_two = |cell: &mut CellResult| {
        cell.runs[..2].iter_mut().for_each(|run| run.totals.response.p50_us = Some(120.0));
    };
    assert_eq!(with(&far_in_two), AutoAnswer::Open, "six of eight runs are within 5 %, and so is their median");
    assert_eq!(with(&|cell| cell.runs.truncate(7)), AutoAnswer::Open, "too few runs");
    assert_eq!(with(&|cell| cell.runs[0].contaminated = true), AutoAnswer::Open);
    let never = |cell: &mut CellResult| {
        cell.runs.iter_mut().for_each(|run| run.totals.response.p50_us = Some(f64::INFINITY));
    };
    assert_eq!(with(&never), AutoAnswer::No);
}

#[test]
fn winners_and_pages_say_what_the_runs_say() {
    let result = result_of(vec![part([100.0, 200.0, 102.0], [1_000, 300, 1_000])]);
    let verdict = |quantity: &str| {
        let winner = result.winners.iter().find(|winner| winner.quantity.contains(quantity));
        winner.map(|winner| winner.verdict.clone()).expect("compared")
    };
    assert_eq!((verdict("p50").as_str(), verdict("p99").as_str()), ("unicast", "unicast"));
    assert_eq!(verdict("received"), "equivalent");
    let (text, html) = (to_text(&result), page(&result).to_html());
    for shown in [&text, &html] {
        assert!(shown.contains("in 2 of 2 comparisons") && shown.contains("1 further comparisons"), "{shown}");
        assert!(shown.contains("Left out: 50 publishers") && shown.contains("10–10, 8 KiB"), "{shown}");
    }
    assert!(html.contains("multicast by unicast") && html.contains("latency, paper"));
    check_html(&html);
    check_offline(&html);
}

#[test]
fn the_page_has_bytes_and_cpu_against_the_number_and_needs_no_raw_data() {
    let plan = Paper2Plan::quick(5, 2);
    let mut result = result_of(vec![part_like(&plan.parts()[0], [100.0, 200.0, 102.0], [1_000, 300, 1_010])]);
    let whole = page(&result).to_markdown("p2", None);
    check_contains(
        &whole.text,
        &[
            "Made by `thalweg lab run paper2 --quick --seed 5`",
            "*bytes sent on the links for each sample received*\n\n| publishers, and as many subscribers | unicast | multicast | auto |\n\
         |---|---:|---:|---:|\n| 1 | 1.00 | 0.300 | 1.01 |\n",
            "*CPU*",
            "## Every cell of x",
            "| thalweg multicast | 8 | 100 % |",
        ],
    );
    result.parts[0].raw = None;
    let thin = page(&result).to_markdown("p2", None);
    assert_eq!(whole.figures.len() - thin.figures.len(), 4, "a distribution for each number of participants");
    assert!(thin.text.contains("*CPU*"));
}

#[test]
fn the_papers_procedure_answers_one_sample_in_a_thousand_as_long_as_the_rate_allows() {
    let part = Paper2Plan::full(5, 2).parts().into_iter().find(|part| part.name == PERFTEST).expect("there");
    let scenario = Scenario::parse("x", &part.text).unwrap_or_else(|error| panic!("{error}"));
    let counts: Vec<(u32, Option<u32>)> =
        scenario.cells.iter().step_by(3).map(|cell| (cell.publishers, cell.latency_count)).collect();
    let expect = [(1, 1_000), (3, 1_000), (10, 250), (25, 40), (50, 10), (75, 4)];
    assert_eq!(counts, expect.map(|(count, latency_count)| (count, Some(latency_count))));
}

#[test]
fn cited_shapes_are_measured_and_the_last_one_is_best_effort() {
    let parts = Paper2Plan::full(5, 2).parts();
    let part = parts.iter().find(|part| part.name == "shapes").expect("there");
    let scenario = Scenario::parse("x", &part.text).unwrap_or_else(|error| panic!("{error}"));
    let shapes: Vec<(u32, u32)> =
        scenario.cells.iter().step_by(3).map(|cell| (cell.publishers, cell.subscribers)).collect();
    assert_eq!(shapes, [(1, 4), (1, 7), (1, 12), (4, 3), (8, 6)]);
    let result = part_like(part, [100.0, 200.0, 102.0], [1_000, 300, 1_010]);
    let names: Vec<String> = result.groups().iter().map(|group| group.name()).collect();
    assert_eq!((names[0].as_str(), names[4].as_str()), ("1–4, 100 B", "8–6, 100 B, best effort"));
}

#[test]
fn the_page_shows_the_papers_means_beside_ours_and_what_sampling_hides() {
    let plan = Paper2Plan::quick(5, 2);
    let closed = part_like(&named(PERFTEST), [100.0, 200.0, 102.0], [1_000, 300, 1_010]);
    let same_rate = plan.same_rate(&closed).expect("closed loops were measured");
    let scenario = Scenario::parse("x", &same_rate.text).unwrap_or_else(|error| panic!("{error}"));
    let rates: Vec<(u32, Addressing, f64)> =
        scenario.cells.iter().map(|cell| (cell.publishers, cell.destination, cell.rate_hz)).collect();
    assert_eq!(
        rates[2],
        (10, Addressing::Unicast, 3_000.04),
        "the median of what the loop reached, for each of 100 pairs"
    );
    let result = result_of(vec![closed, part_like(&same_rate, [250.0, 60.0, 0.0], [1, 1, 1])]);
    assert!(result.winners.iter().all(|winner| !winner.quantity.starts_with("response")), "nothing was due");
    let page = page(&result).to_markdown("p2", None).text;
    check_contains(
        &page,
        &[
            "| 10–10 | 3.6 | 3.2 | multicast | 0.100 | 0.200 | unicast | unicast |",
            "| 10–10 | 237 | 292 | multicast | 240 | 240 | equivalent |",
            "| 75–75 | 312 | 427 | unicast | – | – | not measured | not measured |",
            "| 10–10 | unicast | 300,000 | 1 in 250 | 100 | 200 |",
            "exceeds that of the sampled round trips, there and back, in 2 of 4 cells",
        ],
    );
}

#[test]
fn a_loop_that_no_schedule_follows_is_left_out_and_said() {
    let plan = Paper2Plan::quick(5, 2);
    let closed = |is_fast: fn(u32) -> bool| {
        let mut part = part_like(&named(PERFTEST), [100.0, 200.0, 102.0], [1_000, 300, 1_010]);
        let fast = part.study.cells.iter_mut().filter(|cell| is_fast(cell.cell.publishers));
        fast.flat_map(|cell| &mut cell.runs).for_each(|run| run.received_per_s = Some(2.5e7));
        part
    };
    let three_are_fast = || closed(|publishers| publishers == 3);
    let same_rate = plan.same_rate(&three_are_fast()).expect("ten of each are slow enough");
    let scenario = Scenario::parse("x", &same_rate.text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.cells.iter().map(|cell| cell.publishers).collect::<Vec<_>>(), [10, 10]);
    let of = |part: &Part| part_like(part, [250.0, 60.0, 0.0], [1, 1, 1]);
    // As it was measured while such a schedule asked for the most that it may.
    let mut limited = of(&plan.same_rate(&closed(|_| false)).expect("all are slow enough"));
    let cells = limited.study.cells.iter_mut().filter(|cell| cell.cell.publishers == 3);
    cells.for_each(|cell| cell.cell.rate_hz = 100_000.0);
    let limits = "a schedule asks a publisher for 0.1 samples a second at least and 100,000 at most, the loop reached";
    for open in [of(&same_rate), limited] {
        let page = page(&result_of(vec![three_are_fast(), open])).to_markdown("p2", None).text;
        let told = format!("Left out: 3–3 unicast: {limits} 2,780,000; 3–3 multicast: {limits} 2,780,000.");
        check_contains(&page, &[&told, "there and back, in 1 of 2 cells", "| 10–10 | unicast | 300,000 | 1 in 250 |"]);
        assert!(!page.contains("| 3–3 | unicast | 25,000,000 |"), "{page}");
    }
    let all_are_fast = closed(|_| true);
    assert!(plan.same_rate(&all_are_fast).is_none());
    let page = page(&result_of(vec![all_are_fast])).to_markdown("p2", None).text;
    check_contains(&page, &["10–10 multicast: a schedule asks", "the loop reached 250,000."]);
}

#[test]
fn a_latency_without_an_end_has_no_figure() {
    let told = |endless: &[Addressing]| {
        let mut part = part([100.0, 200.0, 102.0], [1_000, 300, 1_000]);
        let cells = part.study.cells.iter_mut().filter(|cell| endless.contains(&cell.cell.destination));
        cells.flat_map(|cell| &mut cell.runs).for_each(|run| run.totals.response.p50_us = Some(f64::INFINITY));
        check_of(part).text
    };
    let auto = told(&[Addressing::Auto]);
    assert!(auto.starts_with("auto never ends: it sent by unicast too"), "{auto}");
    assert_eq!(told(&[Addressing::Unicast, Addressing::Multicast, Addressing::Auto]), "neither has an end");
}

#[test]
fn few_runs_are_not_judged() {
    let mut part = part([100.0, 200.0, 102.0], [1_000, 300, 1_000]);
    part.study.cells.iter_mut().for_each(|cell| cell.runs.truncate(7));
    let winners = answers::winners(&[part]);
    assert!(winners.iter().all(|winner| winner.verdict == "not judged: fewer than 8 runs"), "{winners:?}");
}

#[test]
fn the_comparisons_of_a_quantity_are_one_family_whatever_their_part() {
    let of = |name: &str| PartResult { name: name.to_owned(), ..part([100.0, 200.0, 102.0], [1_000, 300, 1_000]) };
    let told = |parts: &[PartResult]| {
        let winners = answers::winners(parts);
        let own = winners.iter().filter(|winner| winner.quantity.contains("p50"));
        own.map(|winner| winner.verdict.clone()).collect::<Vec<_>>()
    };
    let lengths = || (0..4).map(|_| of("lengths")).collect::<Vec<_>>();
    let readers = || (0..4).map(|_| of("calibration")).collect::<Vec<_>>();
    let (few, others) = (told(&lengths()), told(&readers()));
    assert!(few.len() <= 6 && others.len() <= 6 && few.len() + others.len() > 6, "{few:?} {others:?}");
    assert!(few.iter().chain(&others).all(|verdict| verdict == "unicast"), "{few:?} {others:?}");
    let both = told(&lengths().into_iter().chain(readers()).collect::<Vec<_>>());
    assert!(both.iter().all(|verdict| verdict.starts_with("open: 8 rounds;")), "{both:?}");
}

#[test]
fn peers_take_part_by_both_ways() {
    let plan = Paper2Plan::quick(5, 2).with_peers(&[PeerProgram::Cyclone]);
    assert!(plan.command.ends_with("--peers cyclone"), "{}", plan.command);
    let parts = plan.parts();
    let part = parts.iter().find(|part| part.name == PERFTEST).expect("there");
    let result = part_like(part, [100.0, 200.0, 102.0], [1_000, 300, 1_010]);
    let names: Vec<String> = result.groups().iter().map(|group| group.name()).collect();
    let expect = ["3–3, 100 B", "10–10, 100 B", "cyclone-tuned, 3–3, 100 B", "cyclone-tuned, 10–10, 100 B"];
    assert_eq!(names, expect);
    let same_rate = plan.same_rate(&result).expect("measured").text;
    assert!(!same_rate.contains("cyclone"), "{same_rate}");
    let all = [result];
    let winners = answers::winners(&all);
    let own = winners.iter().find(|winner| winner.group.starts_with("cyclone-tuned, 3–3")).expect("compared");
    assert_eq!((own.medians[2], own.verdict.as_str()), (None, "unicast"));
    assert!(answers::checks(&all).iter().all(|check| !check.group.contains("cyclone")), "it has no auto");
}

/// What is said of `auto` at the limit of the machine, with medians in µs of unicast, multicast and `auto`; 99th percentiles are three times
/// as large.
fn at_the_limit(latencies_us: [f64; 3], wire: [u64; 3], spoil: impl Fn(&mut PartResult)) -> Vec<String> {
    let mut part = part_like(&named("overload"), latencies_us, wire);
    spoil(&mut part);
    limit::sentences(&part)
}

#[test]
fn at_the_limit_auto_is_told_apart_from_unicast_only_where_every_run_says_so() {
    let wire = [9_000, 4_000, 9_100];
    let alike = at_the_limit([2_000.0, 9_000.0, 2_000.0], wire, |_| {});
    assert_eq!(alike.len(), 1);
    check_contains(
        &alike[0],
        &[
            "auto sent by unicast (1.01 times its bytes)",
            "from 6.00 ms to 6.00 ms with unicast",
            "the two ranges overlap",
        ],
    );
    // One run of unicast was disturbed and took longer than all of auto's.
    let disturbed = at_the_limit([2_000.0, 9_000.0, 2_500.0], wire, |part| {
        let run = &mut part.study.cells[0].runs[3];
        (run.contaminated, run.totals.response.p99_us) = (true, Some(19_000.0));
    });
    assert!(
        disturbed[0].contains("from 6.00 ms to 19.0 ms (at most 6.00 ms on a quiet machine) with unicast"),
        "{disturbed:?}"
    );
    assert!(disturbed[0].contains("the two ranges overlap"), "{disturbed:?}");
    let slower = at_the_limit([2_000.0, 9_000.0, 4_000.0], wire, |_| {});
    assert!(slower[0].contains("every run of auto is slower than every run of unicast"), "{slower:?}");
    let faster = at_the_limit([2_000.0, 9_000.0, 1_000.0], wire, |_| {});
    assert!(faster[0].contains("every run of auto is faster"), "{faster:?}");
    assert!(at_the_limit([2_000.0, 9_000.0, 2_000.0], [9_000, 4_000, 4_100], |_| {}).is_empty(), "it took the group");
    let result = result_of(vec![part_like(&named("overload"), [2_000.0, 9_000.0, 2_000.0], wire)]);
    assert!(page(&result).to_html().contains("the two ranges overlap"), "the page says it");
    assert!(to_text(&result).contains("the two ranges overlap"), "the terminal says it");
}
