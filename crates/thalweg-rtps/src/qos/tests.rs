use super::*;
use crate::rng::Rng;
use crate::types::Keyed;

const SECOND: Duration = Duration::from_secs(1);

/// Tells what becomes of a writer and a reader of the same topic whose QoS `change` sets.
#[track_caller]
fn matched(change: impl FnOnce(&mut WriterQos, &mut ReaderQos), expect: &str) {
    let (mut writer, mut reader) = (WriterQos::default(), ReaderQos::default());
    change(&mut writer, &mut reader);
    let offer = Offer { topic_name: "T", type_name: "Y", keyed: Keyed::No, describes_type: false, qos: &writer };
    let request =
        Request { topic_name: "T", type_name: "Y", keyed: Keyed::No, forces_type_validation: false, qos: &reader };
    let result = match_endpoints(&offer, &request);
    assert_eq!(result.to_string(), if expect.is_empty() { "writer and reader match" } else { expect });
    assert_eq!(result.is_match(), expect.is_empty());
}

#[test]
fn defaults_match_and_are_effective() {
    matched(|_, _| (), "");
    assert_eq!(WriterQos::default().check(), Ok(()));
    assert_eq!(ReaderQos::default().check(), Ok(()));
    assert_eq!(WriterQos::default().reliability, Reliability::RELIABLE);
    assert_eq!(ReaderQos::default().reliability, Reliability::BestEffort);
}

#[test]
fn names_and_keys_must_agree() {
    let (writer, reader) = (WriterQos::default(), ReaderQos::default());
    let offer = Offer { topic_name: "T", type_name: "Y", keyed: Keyed::No, describes_type: false, qos: &writer };
    let request =
        Request { topic_name: "T", type_name: "Y", keyed: Keyed::No, forces_type_validation: false, qos: &reader };
    let check = |offer: Offer<'_>, request: Request<'_>, expect: &str| {
        assert_eq!(match_endpoints(&offer, &request).to_string(), expect);
    };
    check(Offer { topic_name: "U", ..offer }, request, "the topics' names differ");
    let expect = "the types' names differ: the writer has \"Y\", the reader \"Z\"";
    check(offer, Request { type_name: "Z", ..request }, expect);
    let expect = "the writer's type has a key, the reader's has none";
    check(Offer { keyed: Keyed::Yes, ..offer }, request, expect);
    let expect = "the reader's type has a key, the writer's has none";
    check(offer, Request { keyed: Keyed::Yes, ..request }, expect);
}

#[test]
fn offered_reliability_and_durability_are_at_least_requested() {
    let rule = "offered must be at least requested (DDS 1.4 §2.2.3)";
    matched(|_, reader| reader.reliability = Reliability::RELIABLE, "");
    matched(|writer, _| writer.reliability = Reliability::BestEffort, "");
    matched(
        |writer, reader| {
            writer.reliability = Reliability::BestEffort;
            reader.reliability = Reliability::RELIABLE;
        },
        &format!("RELIABILITY: offered BEST_EFFORT, requested RELIABLE: {rule}"),
    );
    let kinds = [Durability::Volatile, Durability::TransientLocal, Durability::Transient, Durability::Persistent];
    for (rank, offered) in kinds.into_iter().enumerate() {
        for (wanted, requested) in kinds.into_iter().enumerate() {
            let expect = format!("DURABILITY: offered {offered}, requested {requested}: {rule}");
            let expect = if rank >= wanted { "" } else { &expect };
            matched(|writer, reader| (writer.durability, reader.durability) = (offered, requested), expect);
        }
    }
}

#[test]
fn offered_periods_are_at_most_requested_but_for_rounding() {
    let rule = "offered must be at most requested (DDS 1.4 §2.2.3)";
    matched(|writer, _| writer.timing.deadline = SECOND, "");
    matched(|writer, reader| (writer.timing.deadline, reader.timing.deadline) = (SECOND, SECOND), "");
    let rounded = SECOND - Duration::from_nanos(2);
    matched(|writer, reader| (writer.timing.deadline, reader.timing.deadline) = (SECOND, rounded), "");
    matched(|_, reader| reader.timing.deadline = SECOND, &format!("DEADLINE: offered infinite, requested 1s: {rule}"));
    let shorter = SECOND - Duration::from_micros(1);
    matched(
        |writer, reader| (writer.timing.deadline, reader.timing.deadline) = (SECOND, shorter),
        &format!("DEADLINE: offered 1s, requested 999.999ms: {rule}"),
    );
    matched(|_, reader| reader.timing.latency_budget = SECOND, "");
    matched(
        |writer, _| writer.timing.latency_budget = SECOND,
        &format!("LATENCY_BUDGET: offered 1s, requested 0ns: {rule}"),
    );
}

#[test]
fn offered_liveliness_is_of_at_least_the_requested_kind_and_renewed_as_often() {
    let rule = "the offered kind must be at least the requested one, the offered lease at most (DDS 1.4 §2.2.3.11)";
    let automatic = Liveliness { kind: LivelinessKind::Automatic, lease: SECOND };
    let manual = Liveliness { kind: LivelinessKind::ManualByTopic, lease: SECOND };
    matched(|writer, reader| (writer.liveliness, reader.liveliness) = (manual, automatic), "");
    matched(|writer, _| writer.liveliness = automatic, "");
    matched(
        |writer, reader| (writer.liveliness, reader.liveliness) = (automatic, manual),
        &format!("LIVELINESS: offered AUTOMATIC with lease 1s, requested MANUAL_BY_TOPIC with lease 1s: {rule}"),
    );
    matched(
        |_, reader| reader.liveliness = automatic,
        &format!("LIVELINESS: offered AUTOMATIC with lease infinite, requested AUTOMATIC with lease 1s: {rule}"),
    );
}

#[test]
fn ownership_is_compared_by_kind_and_not_by_strength() {
    let exclusive = WriterOwnership::Exclusive { strength: 3 };
    matched(|writer, reader| (writer.ownership, reader.ownership) = (exclusive, Ownership::Exclusive), "");
    let rule = "both must be the same kind (DDS 1.4 §2.2.3.9)";
    matched(
        |writer, _| writer.ownership = exclusive,
        &format!("OWNERSHIP: offered EXCLUSIVE, requested SHARED: {rule}"),
    );
    matched(
        |_, reader| reader.ownership = Ownership::Exclusive,
        &format!("OWNERSHIP: offered SHARED, requested EXCLUSIVE: {rule}"),
    );
}

#[test]
fn offered_order_and_presentation_are_at_least_requested() {
    matched(|writer, _| writer.destination_order = DestinationOrder::BySource, "");
    matched(
        |_, reader| reader.destination_order = DestinationOrder::BySource,
        "DESTINATION_ORDER: offered BY_RECEPTION_TIMESTAMP, requested BY_SOURCE_TIMESTAMP: offered must be at least \
         requested (DDS 1.4 §2.2.3)",
    );
    let most = Presentation { access_scope: AccessScope::Group, coherent: true, ordered: true };
    let some = Presentation { access_scope: AccessScope::Topic, coherent: false, ordered: true };
    matched(|writer, reader| (writer.presentation, reader.presentation) = (most, some), "");
    let rule = "the offered scope must be at least the requested one, with every requested option (DDS 1.4 §2.2.3.6)";
    matched(
        |writer, reader| (writer.presentation, reader.presentation) = (some, most),
        &format!("PRESENTATION: offered TOPIC ordered, requested GROUP coherent ordered: {rule}"),
    );
    matched(
        |_, reader| reader.presentation = Presentation { ordered: true, ..Presentation::default() },
        &format!("PRESENTATION: offered INSTANCE, requested INSTANCE ordered: {rule}"),
    );
    matched(
        |_, reader| reader.presentation = Presentation { coherent: true, ..Presentation::default() },
        &format!("PRESENTATION: offered INSTANCE, requested INSTANCE coherent: {rule}"),
    );
}

#[test]
fn the_first_offered_representation_is_in_the_requested_list_and_an_empty_list_is_xcdr1() {
    use Representation::{Xcdr1, Xcdr2, Xml};
    let rule = "the reader's list must have the writer's first entry (DDS-XTypes 1.3 §7.6.3.1)";
    let check = |offered: &[Representation], requested: &[Representation], expect: Option<&str>| {
        let expect = expect.map(|values| format!("DATA_REPRESENTATION: {values}: {rule}")).unwrap_or_default();
        matched(
            |writer, reader| {
                writer.data_representation = offered.to_vec();
                reader.data_representation = requested.to_vec();
            },
            &expect,
        );
    };
    check(&[], &[], None);
    check(&[Xcdr1], &[], None);
    check(&[], &[Xcdr2, Xcdr1], None);
    check(&[Xcdr2, Xcdr1], &[Xml, Xcdr2], None);
    check(&[Xcdr2], &[], Some("offered XCDR2, requested XCDR1"));
    check(&[], &[Xcdr2], Some("offered XCDR1, requested XCDR2"));
    check(&[Xcdr1, Xcdr2], &[Xcdr2, Xml], Some("offered XCDR1, requested XCDR2, XML"));
    check(&[Representation::Other(9)], &[Xcdr1], Some("offered representation 9, requested XCDR1"));
}

#[test]
fn a_reader_that_forces_type_validation_wants_writers_that_describe_their_type() {
    let (writer, reader) = (WriterQos::default(), ReaderQos::default());
    let check = |describes_type: bool, forces_type_validation: bool, expect: &str| {
        let offer = Offer { topic_name: "T", type_name: "Y", keyed: Keyed::No, describes_type, qos: &writer };
        let request =
            Request { topic_name: "T", type_name: "Y", keyed: Keyed::No, forces_type_validation, qos: &reader };
        assert_eq!(match_endpoints(&offer, &request).to_string(), expect);
    };
    for (describes, forces) in [(false, false), (true, false), (true, true)] {
        check(describes, forces, "writer and reader match");
    }
    let expect = "TYPE_CONSISTENCY: offered no type information, requested force_type_validation: the reader forces type \
                  validation, which needs type information (DDS-XTypes 1.3 §7.6.3.4)";
    check(false, true, expect);
}

#[test]
fn all_mismatches_are_told_in_the_order_of_their_ids() {
    let (mut writer, mut reader) = (WriterQos::default(), ReaderQos::default());
    writer.reliability = Reliability::BestEffort;
    writer.data_representation = vec![Representation::Xml];
    writer.timing.latency_budget = SECOND;
    writer.ownership = WriterOwnership::Exclusive { strength: 0 };
    reader.reliability = Reliability::RELIABLE;
    reader.durability = Durability::TransientLocal;
    reader.presentation.ordered = true;
    reader.timing.deadline = SECOND;
    reader.liveliness.lease = SECOND;
    reader.destination_order = DestinationOrder::BySource;
    let offer = Offer { topic_name: "T", type_name: "Y", keyed: Keyed::No, describes_type: false, qos: &writer };
    let request =
        Request { topic_name: "T", type_name: "Y", keyed: Keyed::No, forces_type_validation: false, qos: &reader };
    let MatchResult::Incompatible(mismatches) = match_endpoints(&offer, &request) else { panic!("they match") };
    let ids: Vec<_> = mismatches.iter().map(|mismatch| mismatch.policy.0).collect();
    assert_eq!(ids, [2, 3, 4, 5, 6, 8, 11, 12, 23]);
}

#[test]
fn disjoint_partitions_are_told_with_their_names() {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    matched(
        |writer, _| writer.partition = names(&["a", "b*"]),
        "no partition fits: the writer is in \"a\", \"b*\", the reader in the default one",
    );
    matched(
        |writer, reader| {
            writer.partition = names(&["a"]);
            reader.partition = names(&["b"]);
            reader.reliability = Reliability::RELIABLE;
            writer.reliability = Reliability::BestEffort;
        },
        "no partition fits: the writer is in \"a\", the reader in \"b\"",
    );
}

#[test]
fn partitions_match_by_name_or_by_one_pattern() {
    let check = |offered: &[&str], requested: &[&str], expect: bool| {
        assert_eq!(partitions_match(offered, requested), expect, "{offered:?} {requested:?}");
        assert_eq!(partitions_match(requested, offered), expect, "{requested:?} {offered:?}");
    };
    check(&[], &[], true);
    check(&[], &[""], true);
    check(&[], &["*"], true);
    check(&[], &["?"], false);
    check(&[], &["a"], false);
    check(&["a"], &["a"], true);
    check(&["a"], &["A"], false);
    check(&["a", "b"], &["c", "b"], true);
    check(&["a*"], &["c", "abc"], true);
    check(&["a*"], &["a*"], false);
    check(&["a*"], &["a?"], false);
    check(&["*"], &["*"], false);
    check(&["lab[1]"], &["lab[1]"], true);
    check(&["lab[1]"], &["lab1"], true);
    check(&["lab[1"], &["lab[1"], true);
    check(&["a\\*"], &["a*"], false);
    check(&["a\\b"], &["ab"], true);
}

#[test]
fn patterns_are_those_of_fnmatch() {
    let check = |pattern: &str, name: &str, expect: bool| {
        assert_eq!(name_matches(pattern, name), expect, "{pattern:?} {name:?}");
    };
    check("room ?", "room 1", true);
    check("room ?", "room ü", true);
    check("room ?", "room ", false);
    check("*/left/*", "robot/left/arm", true);
    check("*/left/*", "robot/left", false);
    check("a*b*c", "aXbXbXc", true);
    check("a*b*c", "aXbXbX", false);
    check("**", "", true);
    check("a**", "a", true);
    check("[abc]", "b", true);
    check("[abc]", "d", false);
    check("[a-c]x", "bx", true);
    check("[a-c]x", "dx", false);
    check("[!a-c]x", "dx", true);
    check("[^a-c]x", "bx", false);
    check("[]a]", "]", true);
    check("[!]a]", "]", false);
    check("[a-]", "-", true);
    check("[\\]]", "]", true);
    check("[c-a]", "b", false);
    check("x*[", "xy[", true);
    check("*[0-9]", "node 17", true);
    check("*[0-9]", "node x", false);
    check("*\\*", "x", false);
}

/// The textbook definition, exponential but plainly right, for `*`, `?` and literals.
fn fits_by_definition(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], _) => name.is_empty(),
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|skip| fits_by_definition(rest, &name[skip..])),
        ([b'?', rest @ ..], [_, others @ ..]) => fits_by_definition(rest, others),
        ([literal, rest @ ..], [other, others @ ..]) => literal == other && fits_by_definition(rest, others),
        (_, []) => false,
    }
}

#[test]
fn stars_and_question_marks_fit_what_their_definition_says() {
    let mut rng = Rng::new(7);
    let mut text = |alphabet: &str, length: u64| {
        let letters = alphabet.as_bytes();
        (0..rng.below(length))
            .map(|_| char::from(letters[rng.below(letters.len() as u64) as usize]))
            .collect::<String>()
    };
    for _ in 0..20_000 {
        let (pattern, name) = (text("ab*?", 8), text("ab", 10));
        let expect = fits_by_definition(pattern.as_bytes(), name.as_bytes());
        assert_eq!(name_matches(&pattern, &name), expect, "{pattern:?} {name:?}");
    }
}

#[test]
fn the_worst_pattern_takes_no_more_than_quadratic_work() {
    let pattern = "*a".repeat(PARTITION_NAME_MAX_BYTES / 2);
    let name = format!("{}b", "a".repeat(PARTITION_NAME_MAX_BYTES - 1));
    let offered = vec![pattern; PARTITIONS_MAX];
    assert!(!partitions_match(&offered, &[name]));
}

#[track_caller]
fn refused(change: impl FnOnce(&mut WriterQos, &mut ReaderQos), expect: &str) {
    let (mut writer, mut reader) = (WriterQos::default(), ReaderQos::default());
    change(&mut writer, &mut reader);
    let texts: Vec<_> = [writer.check(), reader.check()].into_iter().filter_map(Result::err).collect();
    assert!(!texts.is_empty(), "expected {expect}");
    for error in texts {
        assert_eq!(error.to_string(), expect);
    }
}

#[test]
fn policies_that_are_not_effective_are_refused_with_the_way_out() {
    refused(
        |writer, _| (writer.durability, writer.reliability) = (Durability::Transient, Reliability::BestEffort),
        "DURABILITY TRANSIENT is not effective yet: a history that outlives its writer is read by repairs; use RELIABLE",
    );
    let group = Presentation { access_scope: AccessScope::Group, coherent: true, ordered: false };
    refused(
        |writer, reader| {
            (writer.presentation, reader.presentation) = (group, group);
            writer.reliability = Reliability::BestEffort;
        },
        "PRESENTATION GROUP coherent is not effective yet: what belongs together with samples of other endpoints must arrive; \
         use RELIABLE, or TOPIC",
    );
    refused(
        |writer, _| writer.transport_priority = 64,
        "TRANSPORT_PRIORITY 64 is not effective yet: the network ranks datagrams by code points from 0 to 63; use one of \
         them, or less than 0 for bulk",
    );
    refused(
        |_, reader| reader.data_representation = vec![Representation::Xcdr1, Representation::Xml],
        "DATA_REPRESENTATION XML is not effective yet: samples are encoded as XCDR1 or XCDR2",
    );
}

#[test]
fn inconsistent_policies_are_refused() {
    refused(
        |writer, reader| (writer.timing.deadline, reader.timing.deadline) = (Duration::ZERO, Duration::ZERO),
        "DEADLINE 0ns is inconsistent: nobody can write that often; use a longer period, or leave it infinite",
    );
    refused(
        |_, reader| (reader.timing.minimum_separation, reader.timing.deadline) = (SECOND * 2, SECOND),
        "TIME_BASED_FILTER 2s is inconsistent: samples that are kept apart for longer than the deadline would always miss it; \
         lower it",
    );
    let short = Duration::from_millis(9);
    refused(
        |writer, reader| (writer.liveliness.lease, reader.liveliness.lease) = (short, short),
        "LIVELINESS AUTOMATIC with lease 9ms is inconsistent: signs of life leave three times in a lease and need time to \
         arrive; use at least 10 ms",
    );
    refused(
        |writer, _| writer.timing.lifespan = Duration::ZERO,
        "LIFESPAN 0ns is inconsistent: a sample would be gone before it is sent; use a longer one, or leave it infinite",
    );
    let depth = |depth| {
        move |writer: &mut WriterQos, reader: &mut ReaderQos| {
            (writer.history, reader.history) = (History::KeepLast(depth), History::KeepLast(depth));
            writer.resource_limits.max_samples_per_instance = Some(10);
            reader.resource_limits.max_samples_per_instance = Some(10);
        }
    };
    refused(
        depth(0),
        "HISTORY KEEP_LAST 0 is inconsistent: the depth is between 1 and 2147483647; use KEEP_ALL for no bound",
    );
    let expect = "HISTORY KEEP_LAST 11 is inconsistent: the depth is above max_samples_per_instance or max_samples; lower \
                  it or raise the limit";
    refused(depth(11), expect);
    refused(
        |writer, _| {
            writer.history = History::KeepLast(11);
            writer.resource_limits.max_samples = Some(10);
        },
        expect,
    );
    let (mut writer, mut reader) = (WriterQos::default(), ReaderQos::default());
    depth(10)(&mut writer, &mut reader);
    assert_eq!((writer.check(), reader.check()), (Ok(()), Ok(())));
    refused(
        |writer, _| writer.resource_limits.max_instances = Some(0),
        "RESOURCE_LIMITS max_instances 0 is inconsistent: a limit is between 1 and 2147483647, or left out",
    );
    refused(
        |_, reader| {
            reader.resource_limits.max_samples = Some(5);
            reader.resource_limits.max_samples_per_instance = Some(6);
        },
        "RESOURCE_LIMITS max_samples 5, max_samples_per_instance 6 is inconsistent: one instance cannot have more samples \
         than all together; raise max_samples",
    );
    refused(
        |writer, _| writer.data_representation = vec![Representation::Xcdr1, Representation::Xcdr2],
        "DATA_REPRESENTATION XCDR1, XCDR2 is inconsistent: a writer uses one representation; name only that one",
    );
    refused(
        |_, reader| reader.liveliness.lease = Duration::ZERO,
        "LIVELINESS AUTOMATIC with lease 0ns is inconsistent: signs of life leave three times in a lease and need time to arrive; \
         use at least 10 ms",
    );
    refused(
        |writer, _| writer.partition = vec!["x".to_owned(); PARTITIONS_MAX + 1],
        "PARTITION with 65 names is inconsistent: at most 64 names can be announced",
    );
    refused(
        |_, reader| reader.partition = vec!["ä".repeat(PARTITION_NAME_MAX_BYTES)],
        &format!("PARTITION \"{}\" is inconsistent: a name has at most 256 bytes and no NUL", "ä".repeat(40)),
    );
    refused(
        |writer, _| writer.partition = vec!["a\0b".to_owned()],
        "PARTITION \"a\\0b\" is inconsistent: a name has at most 256 bytes and no NUL",
    );
    let long = || vec![0; OCTETS_MAX + 1];
    let carry = "of 65001 bytes is inconsistent: discovery data carry at most 65000 bytes";
    refused(|writer, _| writer.attached.user = long(), &format!("USER_DATA {carry}"));
    refused(|writer, _| writer.attached.topic = long(), &format!("TOPIC_DATA {carry}"));
    refused(|_, reader| reader.attached.group = long(), &format!("GROUP_DATA {carry}"));
    refused(
        |writer, _| writer.transmission = Transmission::by(Method::asynchronous("")),
        "TRANSMISSION asynchronous () is inconsistent: a flow controller has a name; \"background\" is always there",
    );
    for bytes in [547, 65_001] {
        refused(
            |writer, _| writer.transmission.max_datagram_bytes = bytes,
            &format!(
                "TRANSMISSION max_datagram_bytes {bytes} is inconsistent: a datagram has 548 to 65000 bytes: less leaves no room \
                 beside the headers, more is no UDP datagram"
            ),
        );
    }
    refused(
        |writer, _| writer.transmission.heartbeat_period = Duration::from_micros(999),
        "TRANSMISSION heartbeat_period 999µs is inconsistent: readers are asked again after 1 ms to 3 s",
    );
    assert_eq!(check_participant_data(&long()).unwrap_err().to_string(), format!("USER_DATA {carry}"));
}

#[test]
fn errors_tell_inconsistent_from_unsupported() {
    let mut qos = WriterQos { durability: Durability::Persistent, ..WriterQos::default() };
    qos.reliability = Reliability::BestEffort;
    assert_eq!(qos.check().unwrap_err().kind, QosErrorKind::Unsupported);
    qos.history = History::KeepLast(0);
    assert_eq!(qos.check().unwrap_err().kind, QosErrorKind::Inconsistent);
}

#[test]
fn policies_have_the_ids_and_names_of_the_specification() {
    assert_eq!((PolicyId::RELIABILITY.0, PolicyId::RELIABILITY.to_string().as_str()), (11, "RELIABILITY"));
    assert_eq!(PolicyId(23).name(), "DATA_REPRESENTATION");
    assert_eq!(PolicyId(99).to_string(), "policy 99");
}

#[test]
fn a_durability_service_keeps_at_least_one_sample() {
    let mut qos = WriterQos { durability: Durability::Transient, ..WriterQos::default() };
    assert_eq!(qos.check(), Ok(()));
    qos.durability_service.history = History::KeepLast(0);
    let error = qos.check().unwrap_err();
    assert_eq!((error.kind, error.policy), (QosErrorKind::Inconsistent, PolicyId::DURABILITY_SERVICE));
}
