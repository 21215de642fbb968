//! Rounds of answers, and what they change.

use super::*;

/// A first window of which each quarter is answered after so many microseconds.
fn first_window(answers: [u64; 4]) -> Congestion {
    let mut path = Congestion::new(Instant::ZERO);
    for (quarter, micros) in (1..).zip(answers) {
        let took = Some(Duration::from_micros(micros));
        let reached = Some(quarter * WINDOW_START / 4);
        let busy_since = (Instant::ZERO, 0);
        let answered = Answered { sent: WINDOW_START, busy_since, reached, took, repaired: None, window: 1 << 22 };
        path.handle_answer(Instant::from_nanos(micros * 1_000), &answered, Duration::ZERO);
    }
    path
}

/// A path that carried windows as large as the reader's socket lets them be, and then rounds of which all answers took so many
/// milliseconds.
fn opened_window(answers: &[u64]) -> Congestion {
    let (mut path, mut sent, mut now) = (Congestion::new(Instant::ZERO), 0, Instant::ZERO);
    let quick = [1; 12];
    for millis in quick.iter().chain(answers) {
        let took = Duration::from_millis(*millis);
        sent += path.window();
        now += took;
        let (reached, busy_since) = (Some(sent), (Instant::ZERO, 0));
        let answered = Answered { sent, busy_since, reached, took: Some(took), repaired: None, window: 1 << 22 };
        path.handle_answer(now, &answered, Duration::ZERO);
    }
    path
}

#[test]
fn a_moment_in_which_all_stood_still_is_no_full_link() {
    assert_eq!(opened_window(&[]).window(), 1 << 22);
    assert!(!opened_window(&[20]).is_paced());
    assert!(!opened_window(&[20, 1, 1, 20]).is_paced());
    assert!(opened_window(&[20, 20]).is_paced(), "what stays late has a reason that stays");
}

#[test]
fn who_sends_less_than_half_of_a_window_is_not_what_makes_answers_late() {
    for (share, paced) in [(3, false), (1, true)] {
        let (mut path, mut sent) = (Congestion::new(Instant::ZERO), 0);
        for round in 1..=4 {
            sent += path.window() / share;
            let took = Some(if round == 1 { Duration::from_millis(1) } else { Duration::from_millis(40) });
            let (reached, busy_since) = (Some(sent), (Instant::ZERO, 0));
            let answered = Answered { sent, busy_since, reached, took, repaired: None, window: 1 << 22 };
            path.handle_answer(Instant::from_nanos(round * 100_000_000), &answered, Duration::ZERO);
        }
        assert_eq!(path.is_paced(), paced, "a window's 1/{share} in each round");
    }
}

/// What had arrived in ten seconds of a trickle counted as carried in the millisecond since the writer was busy again.
#[test]
fn what_arrived_before_an_idle_time_is_not_carried_since() {
    let mut path = Congestion::new(Instant::ZERO);
    let answered = |datagrams, reached, busy_since: (u64, u64)| Answered {
        sent: datagrams * DATAGRAM,
        busy_since: (Instant::from_nanos(busy_since.0 * 1_000_000), busy_since.1 * DATAGRAM),
        reached: Some(reached * DATAGRAM),
        took: Some(Duration::from_millis(1)),
        repaired: None,
        window: 1 << 22,
    };
    for second in 1..=10 {
        let now = Instant::from_nanos(second * 1_000_000_000);
        path.handle_answer(now, &answered(second, second, (second * 1_000 - 1, second - 1)), Duration::ZERO);
    }
    path.note_loss(Loss::datagrams(WINDOW_START / DATAGRAM, DATAGRAM));
    let now = Instant::from_nanos(10_005_000_000);
    path.handle_answer(now, &answered(11 + WINDOW_START / DATAGRAM, 11, (10_003, 10)), Duration::ZERO);
    let Phase::Paced(pace) = &path.phase else { panic!("a whole window was lost: {path:?}") };
    let since = rate_of(DATAGRAM, Duration::from_millis(2));
    assert!(pace.rate <= since, "{} where {since} arrived a second", pace.rate);
}

#[test]
fn a_window_may_be_lost_of_which_nothing_left_in_this_round_or_the_last() {
    let mut path = Congestion::new(Instant::ZERO);
    path.note_loss(Loss::datagrams(WINDOW_START / DATAGRAM, DATAGRAM));
    let busy_since = (Instant::ZERO, 0);
    let answered = Answered { sent: 0, busy_since, reached: None, took: None, repaired: None, window: 1 << 22 };
    path.handle_answer(Instant::from_nanos(5_000_000), &answered, Duration::ZERO);
    assert!(path.is_paced());
}

#[test]
fn of_few_large_datagrams_chance_takes_a_greater_share() {
    const LARGE: u64 = 4 * DATAGRAM;
    let paced_by = |lost: u64, datagram: u64| {
        let mut path = Congestion::new(Instant::ZERO);
        path.note_loss(Loss::datagrams(lost, datagram));
        let (sent, busy_since) = (WINDOW_START, (Instant::ZERO, 0));
        let answered = Answered { sent, busy_since, reached: Some(sent), took: None, repaired: None, window: 1 << 22 };
        path.handle_answer(Instant::from_nanos(5_000_000), &answered, Duration::ZERO);
        path.is_paced()
    };
    assert!(!paced_by(2, LARGE), "of sixteen");
    assert!(paced_by(8, DATAGRAM), "as much, of sixty-four");
    assert!(paced_by(4, LARGE));
}

#[test]
fn answers_of_a_burst_that_come_later_and_later_tell_what_a_link_carries() {
    let mut path = first_window([10_000, 20_000, 30_000, 40_000]);
    assert!(path.is_paced());
    let now = Instant::from_nanos(40_000_000);
    let drained = path.resume_at(now).since(now);
    assert!(drained > Duration::from_millis(40), "what is on its way passes first: {drained:?}");
    let a_second_later = now + drained + Duration::from_secs(1);
    let burst = path.credit(a_second_later);
    assert!((7_000..8_000).contains(&burst), "2 ms of 95 % of 64 datagrams in 40 ms: {burst}");
}

/// A round of 20 datagrams that ends at so many milliseconds, of which so many are lost.
fn small_round(path: &mut Congestion, round: u64, millis: u64, lost: u64, assumed: Duration) -> Change {
    let sent = round * 20 * DATAGRAM;
    path.note_loss(Loss::datagrams(lost, DATAGRAM));
    let busy_since = (Instant::ZERO, 0);
    let answered = Answered { sent, busy_since, reached: Some(sent), took: None, repaired: None, window: 43_690 };
    path.handle_answer(Instant::from_nanos(millis * 1_000_000), &answered, assumed)
}

#[test]
fn a_window_that_is_lost_as_a_whole_ends_its_round_at_once() {
    for (lost, change) in [(WINDOW_START - DATAGRAM, Change::Nothing), (WINDOW_START, Change::Slower)] {
        let mut path = Congestion::new(Instant::ZERO);
        path.note_loss(Loss { cost: lost, events: 2, datagram: DATAGRAM });
        let (sent, busy_since) = (WINDOW_START, (Instant::ZERO, 0));
        let answered = Answered { sent, busy_since, reached: None, took: None, repaired: None, window: 1 << 22 };
        assert_eq!(path.handle_answer(Instant::from_nanos(5_000_000), &answered, Duration::ZERO), change);
    }
}

#[test]
fn a_path_that_drowns_round_after_round_is_paced_however_little_was_sent() {
    for (losses, paced) in [([12, 12, 12], true), ([12, 4, 12], false), ([0, 12, 12], false)] {
        let mut path = Congestion::new(Instant::ZERO);
        for (round, lost) in (1..).zip(losses) {
            assert!(!path.is_paced());
            small_round(&mut path, round, round * 100, lost, Duration::ZERO);
        }
        assert_eq!(path.is_paced(), paced, "{losses:?}");
    }
}

#[test]
fn after_bursts_that_were_lost_for_the_most_part_the_rate_doubles_until_something_speaks_against_it() {
    let mut path = Congestion::new(Instant::ZERO);
    (1..=3).for_each(|round| _ = small_round(&mut path, round, round * 100, 12, Duration::ZERO));
    let mut rate_after = |round, lost| {
        path.resume_at(Instant::from_nanos(round * 100_000_000));
        small_round(&mut path, round, round * 100, lost, Duration::ZERO);
        let Phase::Paced(pace) = &path.phase else { unreachable!("nothing is known that ends it") };
        pace.rate
    };
    let first = rate_after(4, 0);
    assert_eq!((rate_after(5, 0), rate_after(6, 0)), (first * 2, first * 4));
    let slower = rate_after(7, 6);
    assert!(slower < first * 4 && rate_after(8, 0) < slower * 11 / 10, "{slower}");
}

#[test]
fn only_a_loss_that_a_path_may_have_by_itself_counts_as_its_own() {
    for (lost, background) in [(6, 240..=320), (16, 0..=100)] {
        let mut path = Congestion::new(Instant::ZERO);
        (1..=3).for_each(|round| _ = small_round(&mut path, round, round * 100, 12, Duration::ZERO));
        for round in 4..=20 {
            path.resume_at(Instant::from_nanos(round * 100_000_000));
            small_round(&mut path, round, round * 100, lost, Duration::ZERO);
        }
        assert!(background.contains(&path.background.loss), "{lost} of 20 lost: {}", path.background.loss);
    }
}

#[test]
fn while_no_round_trip_is_known_a_rate_grows_no_sooner_than_losses_are_told() {
    let mut path = Congestion::new(Instant::ZERO);
    (1..=3).for_each(|round| _ = small_round(&mut path, round, round * 100, 12, Duration::ZERO));
    let assumed = Duration::from_millis(100);
    assert_eq!(small_round(&mut path, 5, 399, 0, assumed), Change::Nothing);
    assert_eq!(small_round(&mut path, 6, 400, 0, assumed), Change::Other);
}

#[test]
fn a_busy_reader_is_no_link() {
    assert!(!first_window([300, 500, 700, 900]).is_paced());
    assert!(!first_window([300, 10_000, 9_900, 9_800]).is_paced());
    assert_eq!(first_window([300, 500, 700, 900]).window(), WINDOW_START * 2);
}

/// Rounds of 400 datagrams, a hundredth of a second each, of which runs of 44 datagrams are lost as told; true once the path is paced.
fn loses_runs(runs: impl IntoIterator<Item = u64>) -> bool {
    let mut path = Congestion::new(Instant::ZERO);
    for (round, runs) in (1..).zip(runs) {
        path.note_loss(Loss { cost: runs * 44 * DATAGRAM, events: runs, datagram: DATAGRAM });
        let sent = round * 400 * DATAGRAM;
        let answered = Answered {
            sent,
            busy_since: (Instant::ZERO, 0),
            reached: Some(sent),
            took: None,
            repaired: None,
            window: 43_690,
        };
        path.handle_answer(Instant::from_nanos(round * 10_000_000), &answered, Duration::ZERO);
    }
    path.is_paced()
}

#[test]
fn a_message_that_is_lost_now_and_then_is_no_full_link() {
    // Of a hundred messages with 44 datagrams each, one is lost.
    assert!(!loses_runs((0..400).map(|round| u64::from(round % 11 == 3))));
    // By chance two are lost one soon after the other.
    assert!(!loses_runs((0..40).map(|round| u64::from(round == 20 || round == 22))));
}

#[test]
fn messages_that_are_lost_round_after_round_show_a_full_link() {
    assert!(loses_runs([0, 2, 2, 2, 2, 2]));
    assert!(loses_runs((0..40).map(|round| u64::from(round > 0))), "or one each time");
    assert!(loses_runs([0, 4]), "or several at once");
    assert!(loses_runs([0, 8]));
}
