use super::order::cells_of_round;
use crate::scenario::Scenario;

fn scenario(design: &str, seed: u64) -> Scenario {
    let text = format!(
        "schema = \"thalweg.scenario/1\"\nname = \"x\"\nseed = {seed}\n[matrix]\npayload_bytes = [1, 2, 3]\nrate_hz = 10\n\
         [schedule]\nseconds = 1\nruns = 8\ndesign = \"{design}\"\n"
    );
    Scenario::parse("x", &text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_block_is_an_order_of_chance_and_its_reverse() {
    let scenario = scenario("abba", 5);
    let rounds: Vec<Vec<usize>> = (0..40).map(|round| cells_of_round(&scenario, round)).collect();
    for (first, second) in rounds.iter().step_by(2).zip(rounds.iter().skip(1).step_by(2)) {
        let mut reversed = second.clone();
        reversed.reverse();
        assert_eq!(*first, reversed);
    }
    let firsts: std::collections::HashSet<_> = rounds.iter().step_by(2).collect();
    assert!(firsts.len() > 3, "chance decides: {firsts:?}");
    assert_ne!(rounds, (0..40).map(|round| cells_of_round(&self::scenario("abba", 6), round)).collect::<Vec<_>>());
}

#[test]
fn a_sequence_is_that_of_the_file() {
    assert_eq!(cells_of_round(&scenario("sequential", 5), 7), [0, 1, 2]);
}
