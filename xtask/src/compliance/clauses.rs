//! Operations and policies of DDS 1.4 with what shows them.

use std::path::Path;

use super::types;
use crate::Outcome;

/// An operation or policy.
pub struct Clause {
    /// Its clause in the standard, unless another document is named.
    pub clause: &'static str,
    /// Its name there.
    pub what: &'static str,
    /// Its name here, or why it is not.
    pub here: &'static str,
    /// File and name of a test that shows it; empty where it is not here.
    pub test: &'static str,
}

pub const fn shown(clause: &'static str, what: &'static str, here: &'static str, test: &'static str) -> Clause {
    Clause { clause, what, here, test }
}

pub const fn absent(clause: &'static str, what: &'static str, why: &'static str) -> Clause {
    Clause { clause, what, here: why, test: "" }
}

/// Where the tests lie whose files begin with these words.
const FOLDERS: [(&str, &str); 4] = [
    ("it/", "crates/thalweg/tests/it/"),
    ("rtps/", "crates/thalweg-rtps/src/"),
    ("types/", "crates/thalweg-types/src/"),
    ("cdr/", "crates/thalweg-cdr/tests/"),
];

/// Rows of clauses under a title.
pub type Area = (&'static str, &'static [Clause]);

/// The standards with their areas.
pub const STANDARDS: &[(&str, &[Area])] = &[
    (
        "Operations and policies of DDS 1.4",
        &[
            ("Participant", PARTICIPANT),
            ("Publisher and writer", WRITER),
            ("Subscriber and reader", READER),
            ("Statuses and conditions", STATUSES),
            ("Policies", POLICIES),
        ],
    ),
    (
        "Types by DDS-XTypes 1.3",
        &[
            ("Type system", types::SYSTEM),
            ("Type representation", types::TYPE_REPRESENTATION),
            ("Data representation", types::DATA_REPRESENTATION),
            ("Language binding", types::LANGUAGE_BINDING),
            ("Use by DDS", types::USE_BY_DDS),
        ],
    ),
];

const PARTICIPANT: &[Clause] = &[
    shown(
        "§2.2.2.2.1.1",
        "create_publisher, create_subscriber",
        "`DomainParticipant::create_publisher`, `create_subscriber`",
        "it/qos.rs partitions_divide_a_topic",
    ),
    shown(
        "§2.2.2.2.1.5",
        "create_topic",
        "`create_topic`",
        "it/types.rs a_second_type_under_a_topic_name_is_refused_and_both_are_named",
    ),
    shown(
        "§2.2.2.3.3",
        "ContentFilteredTopic",
        "`DataReaderBuilder::filter`",
        "it/policies.rs a_filter_lets_only_its_samples_through",
    ),
    absent("§2.2.2.3.4", "MultiTopic", "optional in DDS; absent"),
    shown(
        "§2.2.2.2.1.13",
        "get_builtin_subscriber, §2.2.5 built-in topics",
        "`create_builtin_reader`",
        "it/entities.rs the_domain_is_read_as_instances_that_end_when_their_process_does",
    ),
    shown(
        "§2.2.2.2.1.14",
        "ignore_participant",
        "`ignore_participant`",
        "it/discovery.rs an_ignored_participant_is_gone_for_good",
    ),
    shown(
        "§2.2.2.2.1.15",
        "ignore_topic",
        "`ignore_topic`",
        "it/entities.rs what_is_ignored_of_another_process_is_parted_from_here_alone",
    ),
    shown(
        "§2.2.2.2.1.16",
        "ignore_publication",
        "`ignore_publication`",
        "it/entities.rs what_is_ignored_of_another_process_is_parted_from_here_alone",
    ),
    shown(
        "§2.2.2.2.1.17",
        "ignore_subscription",
        "`ignore_subscription`",
        "it/entities.rs what_is_ignored_of_another_process_is_parted_from_here_alone",
    ),
    shown(
        "§2.2.2.2.1",
        "assert_liveliness",
        "`assert_liveliness`",
        "it/policies.rs an_application_that_no_longer_asserts_its_writer_is_noticed_at_both_ends",
    ),
    shown(
        "§2.2.2.2.1",
        "get_discovered_participants",
        "`discovered_participants`",
        "it/discovery.rs participants_see_each_other_with_name_and_data_and_see_them_leave",
    ),
    absent("§2.2.2.1.1.7", "enable, ENTITY_FACTORY", "entities are enabled when they are created"),
];

const WRITER: &[Clause] = &[
    shown(
        "§2.2.2.1.1.1",
        "set_qos",
        "`DataWriter::set_qos`; of a publisher, by each of its writers",
        "it/entities.rs policies_that_change_are_told_to_other_processes_and_others_refused",
    ),
    shown(
        "§2.2.2.4.1.8",
        "suspend_publications, resume_publications",
        "of each writer: `suspend_publications`",
        "it/entities.rs samples_of_a_suspended_writer_leave_together_when_it_is_resumed",
    ),
    shown(
        "§2.2.2.4.1.10",
        "begin_coherent_changes, end_coherent_changes",
        "`begin_coherent_changes`",
        "it/policies.rs a_coherent_set_of_another_process_appears_at_once",
    ),
    shown(
        "§2.2.2.4.1.12",
        "wait_for_acknowledgments",
        "`wait_for_acknowledgments`",
        "it/blocking.rs acknowledgments_are_waited_for_and_missing_ones_named",
    ),
    shown(
        "§2.2.2.4.2.7",
        "unregister_instance",
        "`unregister`",
        "it/instances.rs unregistering_without_autodispose_leaves_the_instance_without_writers",
    ),
    shown(
        "§2.2.2.4.2.11",
        "write",
        "`write`, `write_many`, `send`",
        "it/exchange.rs reliable_samples_arrive_once_in_order_with_their_source_time",
    ),
    shown(
        "§2.2.2.4.2.12",
        "write_w_timestamp",
        "`write_at`",
        "it/exchange.rs the_application_may_choose_the_source_time",
    ),
    shown("§2.2.2.4.2.13", "dispose", "`dispose`", "it/instances.rs a_disposed_instance_is_told_with_its_key"),
    shown(
        "§2.2.2.4.2.22",
        "assert_liveliness",
        "`DataWriter::assert_liveliness`",
        "it/policies.rs an_application_that_no_longer_asserts_its_writer_is_noticed_at_both_ends",
    ),
    shown(
        "DDS-RPC 1.0",
        "related sample identity",
        "`write_related`, `Sample::related_identity`",
        "it/entities.rs replies_name_the_samples_that_they_answer_whichever_way_these_were_written",
    ),
    shown(
        "–",
        "loans",
        "`DataWriter::loan`; every sample that is taken is a loan",
        "it/entities.rs replies_name_the_samples_that_they_answer_whichever_way_these_were_written",
    ),
    absent("§2.2.2.4.2.5", "register_instance", "the first write registers"),
];

const READER: &[Clause] = &[
    shown(
        "§2.2.2.1.1.1",
        "set_qos",
        "`DataReader::set_qos`",
        "rtps/participant/policy_tests.rs a_sample_that_was_kept_back_follows_when_the_separation_ends",
    ),
    shown(
        "§2.2.2.5.3.8",
        "read, take",
        "`read`, `take`, `recv`, `stream`",
        "it/exchange.rs read_leaves_samples_and_take_removes_them",
    ),
    shown(
        "§2.2.2.5.3.10",
        "read_w_condition, take_w_condition",
        "`read_where`, `take_where`",
        "it/conditions.rs a_query_on_a_keyless_topic_reads_and_takes_what_it_selects",
    ),
    shown(
        "§2.2.2.5.3.14",
        "read_instance, take_instance",
        "`read_instance`, `take_instance`",
        "it/instance_access.rs taking_instance_by_instance_visits_each_once_whatever_the_others_get",
    ),
    shown(
        "§2.2.2.5.3.16",
        "read_next_instance, take_next_instance",
        "`read_next_instance`, `take_next_instance`",
        "it/instance_access.rs the_next_instance_is_the_next_with_selected_samples",
    ),
    shown(
        "§2.2.2.5.3.27",
        "wait_for_historical_data",
        "`wait_for_historical_data`",
        "it/instance_access.rs history_is_there_when_the_wait_for_it_ends",
    ),
    shown(
        "§2.2.2.5.3.28",
        "get_key_value, lookup_instance",
        "`key_value`, `lookup_instance`",
        "it/instance_access.rs an_instance_and_its_key_lead_to_each_other",
    ),
    shown(
        "§2.2.2.5.5",
        "SampleInfo",
        "`Sample::info`",
        "it/instances.rs an_instance_comes_back_as_new_after_it_was_disposed",
    ),
];

const STATUSES: &[Clause] = &[
    shown(
        "§2.2.4.1",
        "INCONSISTENT_TOPIC",
        "`DomainParticipant::inconsistent_topic`",
        "it/entities.rs another_type_on_a_topic_is_told_as_its_inconsistency",
    ),
    shown(
        "§2.2.4.1",
        "OFFERED and REQUESTED_INCOMPATIBLE_QOS",
        "`offered_incompatible_qos`, `requested_incompatible_qos`",
        "it/qos.rs both_sides_are_told_why_they_do_not_match",
    ),
    shown(
        "§2.2.4.1",
        "PUBLICATION and SUBSCRIPTION_MATCHED",
        "`publication_matched`, `subscription_matched`",
        "it/qos.rs matched_statuses_count_comings_and_goings",
    ),
    shown(
        "§2.2.4.1",
        "OFFERED and REQUESTED_DEADLINE_MISSED",
        "`offered_deadline_missed`, `requested_deadline_missed`",
        "it/policies.rs both_ends_tell_of_an_instance_that_is_not_written_in_time",
    ),
    shown(
        "§2.2.4.1",
        "LIVELINESS_LOST, LIVELINESS_CHANGED",
        "`liveliness_lost`, `liveliness_changed`",
        "it/policies.rs an_application_that_no_longer_asserts_its_writer_is_noticed_at_both_ends",
    ),
    shown(
        "§2.2.4.1",
        "SAMPLE_LOST",
        "`sample_lost`",
        "it/statuses.rs a_sample_without_a_readable_key_is_a_lost_sample",
    ),
    shown(
        "§2.2.4.1",
        "SAMPLE_REJECTED",
        "`sample_rejected`",
        "it/statuses.rs a_sample_that_finds_no_room_is_rejected_once_and_handed_over_later",
    ),
    shown(
        "§2.2.4.2.3",
        "listeners and their propagation",
        "`on_data`, `on_status`, `endpoint_statuses`",
        "it/listeners.rs a_participants_listener_hears_of_others_and_of_endpoints_without_listeners",
    ),
    shown(
        "§2.2.4.4",
        "wait sets and conditions",
        "`conditions`",
        "it/conditions.rs each_kind_of_condition_wakes_by_its_own_cause_alone",
    ),
];

const POLICIES: &[Clause] = &[
    shown(
        "§2.2.3.1",
        "USER_DATA, TOPIC_DATA, GROUP_DATA",
        "`AttachedData`",
        "it/entities.rs the_domain_is_read_as_instances_that_end_when_their_process_does",
    ),
    shown(
        "§2.2.3.4",
        "DURABILITY",
        "`Durability`",
        "it/exchange.rs a_late_reader_gets_transient_local_samples_and_a_volatile_one_does_not",
    ),
    shown(
        "§2.2.3.4",
        "TRANSIENT",
        "`Durability::Transient`",
        "it/durability.rs a_reader_gets_the_history_of_a_writer_that_was_dropped",
    ),
    shown(
        "§2.2.3.4",
        "PERSISTENT",
        "`Durability::Persistent`, `DomainParticipantBuilder::store`",
        "it/durability.rs a_kill_loses_nothing_confirmed_and_delivers_nothing_twice",
    ),
    shown(
        "§2.2.3.5",
        "DURABILITY_SERVICE",
        "`DurabilityService`",
        "it/durability.rs samples_of_an_instance_that_has_ended_go_after_the_cleanup_delay",
    ),
    shown(
        "§2.2.3.6",
        "PRESENTATION",
        "`Presentation`",
        "it/policies.rs a_coherent_set_of_another_process_appears_at_once",
    ),
    shown(
        "§2.2.3.7",
        "DEADLINE",
        "`timing.deadline`",
        "it/policies.rs both_ends_tell_of_an_instance_that_is_not_written_in_time",
    ),
    shown(
        "§2.2.3.8",
        "LATENCY_BUDGET",
        "`timing.latency_budget`",
        "it/latency_budget.rs small_samples_that_may_wait_are_received_together_until_an_endpoint_is_in_a_hurry",
    ),
    shown(
        "§2.2.3.9",
        "OWNERSHIP, OWNERSHIP_STRENGTH",
        "`Ownership`",
        "it/policies.rs the_strongest_writer_owns_an_instance_until_its_process_dies",
    ),
    shown(
        "§2.2.3.11",
        "LIVELINESS",
        "`Liveliness`",
        "it/policies.rs a_stopped_process_is_noticed_within_its_writers_lease",
    ),
    shown(
        "§2.2.3.12",
        "TIME_BASED_FILTER",
        "`timing.minimum_separation`",
        "it/policies.rs a_reader_that_wants_fewer_samples_gets_them_apart",
    ),
    shown("§2.2.3.13", "PARTITION", "`partition`", "it/qos.rs partitions_divide_a_topic"),
    shown(
        "§2.2.3.14",
        "RELIABILITY",
        "`Reliability`",
        "it/exchange.rs reliable_samples_arrive_once_in_order_with_their_source_time",
    ),
    shown(
        "§2.2.3.15",
        "TRANSPORT_PRIORITY",
        "`transport_priority`",
        "rtps/participant/flow_tests.rs higher_priority_leaves_first_and_equals_wait_for_one_outbox_at_most",
    ),
    shown(
        "§2.2.3.16",
        "LIFESPAN",
        "`timing.lifespan`",
        "it/policies.rs samples_are_worth_nothing_after_their_lifespan_at_either_end",
    ),
    shown(
        "§2.2.3.17",
        "DESTINATION_ORDER",
        "`DestinationOrder`",
        "it/policies.rs samples_that_are_older_at_their_source_are_not_handed_over",
    ),
    shown("§2.2.3.18", "HISTORY", "`History`", "it/blocking.rs keep_last_never_blocks_and_counts_what_it_overwrote"),
    shown(
        "§2.2.3.19",
        "RESOURCE_LIMITS",
        "`ResourceLimits`",
        "it/entities.rs the_first_sample_of_many_that_finds_no_room_is_told",
    ),
    absent("§2.2.3.20", "ENTITY_FACTORY", "entities are enabled when they are created"),
    shown(
        "§2.2.3.21",
        "WRITER_DATA_LIFECYCLE",
        "`autodispose`",
        "it/instances.rs unregistering_without_autodispose_leaves_the_instance_without_writers",
    ),
    shown(
        "§2.2.3.22",
        "READER_DATA_LIFECYCLE",
        "`ReaderLifecycle`, fixed at creation",
        "it/policies.rs what_nobody_writes_any_more_goes_when_the_reader_says_so",
    ),
    shown(
        "XTypes 1.3 §7.6.3.7",
        "TYPE_CONSISTENCY_ENFORCEMENT",
        "`ReaderQos::type_consistency`",
        "it/entities.rs a_reader_enforces_the_consistency_of_types_that_it_asks_for",
    ),
    shown(
        "XTypes 1.3 §7.6.3.1",
        "DATA_REPRESENTATION",
        "`data_representation`",
        "it/exchange.rs both_encodings_are_understood",
    ),
];

/// Checks that each test that is named exists.
///
/// # Errors
/// The first that does not.
pub fn check_tests(root: &Path) -> Outcome {
    let areas = STANDARDS.iter().flat_map(|(_, areas)| areas.iter());
    for Clause { clause, what, test, .. } in areas.flat_map(|(_, clauses)| clauses.iter()) {
        let Some((file, name)) = test.split_once(' ') else { continue };
        let short = FOLDERS.iter().find_map(|(word, folder)| Some(root.join(folder).join(file.strip_prefix(word)?)));
        let path = short.unwrap_or_else(|| root.join(file));
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if !is_test(&text, name) {
            return Err(format!("{clause} {what}: there is no test {name} in {}", path.display()));
        }
    }
    Ok(())
}

/// Whether a file has a test of this name that runs with the others.
fn is_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let place = lines.iter().position(|line| line.contains(&format!("fn {name}(")));
    let attributes = |place: usize| lines[..place].iter().rev().take_while(|line| line.starts_with("#["));
    place.is_some_and(|place| {
        attributes(place).any(|line| *line == "#[test]") && !attributes(place).any(|line| line.starts_with("#[ignore"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clause_names_a_test_that_runs() {
        check_tests(&crate::workspace::root()).unwrap();
    }

    #[test]
    fn a_function_that_is_no_test_shows_nothing() {
        let text = "#[test]\n#[cfg(unix)]\nfn runs() {}\n\nfn helps() {}\n\n#[test]\n#[ignore]\nfn sleeps() {}\n";
        assert!(is_test(text, "runs"));
        assert!(!is_test(text, "helps") && !is_test(text, "sleeps") && !is_test(text, "lacks"));
    }
}
