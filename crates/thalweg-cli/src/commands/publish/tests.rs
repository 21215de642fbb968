use clap::Parser;
use thalweg_lab::profile::KindSettings;
use thalweg_lab::station::{PackingLimits, PackingMethod};

use super::*;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    options: PublishOptions,
}

#[test]
fn the_part_of_a_profile_is_that_for_the_largest_value_unless_the_user_names_one() {
    let kind = |method| Some(KindSettings { sending: Sending::by(method), segment_bytes: None, delivery: None });
    let (small, large) = (PackingMethod::Batch(PackingLimits::default()), PackingMethod::Immediate);
    let profile = Profile { high_frequency: kind(small.clone()), large: kind(large.clone()), ..Profile::empty() };
    let long = "x".repeat(9_000);
    let check = |words: &[&str], expect: &PackingMethod| {
        let options = Program::try_parse_from(["pub", "t"].iter().chain(words)).expect("a command line").options;
        let values = EncodedValues::new(&options, ValueType::text(), Representation::Xcdr1).expect("texts");
        let (qos, sending) =
            options.offer(&profile, &WriterQos::default(), values.largest_bytes()).expect("it can be used");
        assert_eq!((&sending.method, qos.transmission), (expect, sending.to_qos()));
    };
    check(&["short"], &small);
    check(&["short", &long, "short"], &large);
    // Nobody knows how long the lines of standard input will be.
    check(&[], &small);
    check(&["short", "--profile", "x", "--kind", "large"], &large);
}
