//! The parts of DDS-XTypes 1.3 with what shows them.

use super::clauses::{Clause, absent, shown};

/// What types there are (§7.2).
pub const SYSTEM: &[Clause] = &[
    shown("§7.2.2.1", "namespaces", "modules of IDL, `::` in names", "types/idl/tests.rs all_kinds_of_types_are_read"),
    shown(
        "§7.2.2.2",
        "primitive types, float128 among them",
        "Rust's; a float128 is a type of its own, read at run time as the number or the bits that it has",
        "types/codec/number.rs a_long_double_is_the_number_that_it_equals",
    ),
    shown(
        "§7.2.2.3",
        "string8, string16, bounds",
        "`String`, `WString`, `#[topic(max_len = …)]`",
        "cdr/it/evolution.rs bounds_and_wire_types_are_enforced_on_the_way_out",
    ),
    shown("§7.2.2.4.1", "enumerations", "enums by the derive", "cdr/it/golden.rs enums"),
    shown(
        "§7.2.2.4.1",
        "bit masks, bit sets",
        "at run time",
        "types/codec/tests.rs every_value_of_every_type_is_read_as_it_was_written",
    ),
    shown(
        "§7.2.2.4.2",
        "aliases",
        "`typedef` of IDL",
        "types/tests/recursive.rs other_names_in_a_circle_have_a_bottom_too",
    ),
    shown("§7.2.2.4.3", "arrays", "`[T; N]`", "cdr/it/golden.rs arrays"),
    shown("§7.2.2.4.3", "sequences", "`Vec<T>`, with bounds by the derive", "cdr/it/golden.rs sequences"),
    shown("§7.2.2.4.3", "maps", "`BTreeMap<K, V>`", "cdr/it/golden.rs maps"),
    shown(
        "§7.2.2.4.4",
        "structures, inheritance",
        "structs by the derive; bases at run time",
        "types/type_object/tests.rs what_structures_have_from_their_bases_is_bounded",
    ),
    shown("§7.2.2.4.4", "unions", "enums with data by the derive", "cdr/it/golden.rs unions"),
    shown("§7.2.2.4.4.4", "optional members", "`Option<T>`", "cdr/it/golden.rs optional_members"),
    shown(
        "§7.2.2.4.4.4",
        "must-understand members",
        "`#[topic(must_understand)]`",
        "cdr/it/evolution.rs an_unknown_member_that_must_be_understood_is_an_error",
    ),
    shown(
        "§7.2.2.4.4.4",
        "shared (external) members, types that contain themselves",
        "`Box<T>`",
        "types/tests/recursive.rs a_derived_type_that_contains_itself_has_the_objects_of_its_idl",
    ),
    shown(
        "§7.2.2.4.4.4.7",
        "default values",
        "`@default` of IDL",
        "types/tests/older_senders.rs newer_members_have_the_defaults_that_their_definition_gives_them",
    ),
    shown(
        "§7.2.2.4.4.4.8",
        "key members",
        "`#[topic(key)]`",
        "cdr/it/keys.rs parts_of_a_key_are_named_by_their_own_keys",
    ),
    shown(
        "§7.2.2.7",
        "try-construct behaviour of members and cases",
        "`@try_construct` in IDL; DISCARD by the derive, for elements of collections, and for key members",
        "types/codec/read/construct.rs a_member_is_cut_to_its_bound",
    ),
    shown(
        "§7.2.3",
        "final, appendable and mutable types",
        "`#[topic(extensibility = \"…\")]`",
        "cdr/it/evolution.rs members_of_a_mutable_type_come_in_any_order_and_number",
    ),
    shown("§7.2.4", "assignability", "`thalweg_types::assign`", "types/assign/tests.rs verdicts_are_those_of_cyclone"),
    shown(
        "§7.2.4.2",
        "delimited types",
        "likewise",
        "types/assign/tests.rs in_xcdr1_only_what_tells_its_end_may_have_other_members",
    ),
];

/// How types are told (§7.3).
pub const TYPE_REPRESENTATION: &[Clause] = &[
    shown(
        "§7.3.1",
        "IDL",
        "`thalweg_types::idl`, `thalweg idl`",
        "types/idl/tests.rs a_text_that_was_written_reads_back_as_the_same_types",
    ),
    shown(
        "§7.3.1.2",
        "built-in annotations",
        "those that say something of types and members",
        "types/idl/tests.rs annotations_mean_what_the_standard_says",
    ),
    shown(
        "§7.3.1.2.1.1",
        "ids by name",
        "`@hashid`, `@autoid`; `#[topic(autoid = \"hash\")]`",
        "types/tests/attributes.rs ids_from_names_are_told_to_rust",
    ),
    absent("§7.3.2", "XML type representation", "absent: types are read as IDL, as `.msg` and from the wire"),
    absent("§7.3.3", "XSD type representation", "absent likewise"),
    shown(
        "§7.3.4",
        "TypeIdentifier, TypeObject, minimal and complete",
        "`thalweg_types::type_object`, byte for byte those of Cyclone DDS",
        "types/type_object/tests.rs type_objects_are_those_of_cyclone",
    ),
    shown(
        "§7.3.4",
        "the same beside Fast DDS",
        "likewise",
        "crates/thalweg-cli/tests/peers/vendors/types.rs type_objects_are_those_of_fast_dds",
    ),
    shown(
        "§7.3.4.9",
        "strongly connected components",
        "types that contain themselves",
        "types/tests/recursive.rs the_hash_of_a_component_is_that_of_its_objects_without_it",
    ),
];

/// How values travel (§7.4).
pub const DATA_REPRESENTATION: &[Clause] = &[
    shown(
        "§7.4.1",
        "XCDR1, parameter lists",
        "`Representation`",
        "cdr/it/evolution.rs large_members_get_an_extended_header_in_xcdr1",
    ),
    shown(
        "§7.4.2",
        "XCDR2, delimiters, member headers",
        "`Representation`",
        "cdr/it/property.rs every_encoding_is_read_back",
    ),
    shown("§7.4.3", "both byte orders", "read and written", "cdr/it/property.rs every_encoding_is_read_back"),
    shown(
        "§7.6.3.1.2",
        "encapsulation headers and padding",
        "read and written",
        "cdr/it/golden.rs payloads_are_padded_as_the_options_tell",
    ),
    absent("§7.4.4", "XML data representation", "absent: a reader that asks for it alone is refused"),
];

/// What programs handle values with (§7.5).
pub const LANGUAGE_BINDING: &[Clause] = &[
    shown(
        "§7.5.1",
        "plain language binding",
        "Rust types with `#[derive(Topic)]`, or made by `thalweg idl`",
        "it/generated_types.rs the_made_types_are_told_as_those_of_the_idl",
    ),
    shown(
        "§7.5.2",
        "dynamic types and data",
        "`thalweg_types::Types` and `codec`: documents with the members' names",
        "types/tests.rs dynamic_and_derived_types_understand_each_other",
    ),
];

/// What DDS does with types (§7.6).
pub const USE_BY_DDS: &[Clause] = &[
    shown("§7.6.3.1", "DATA_REPRESENTATION", "`data_representation`", "it/exchange.rs both_encodings_are_understood"),
    shown(
        "§7.6.3.2",
        "TYPE_INFORMATION in discovery",
        "announced and read",
        "it/assignability.rs the_type_of_any_topic_can_be_asked_for",
    ),
    shown(
        "§7.6.3.3",
        "TypeLookup service",
        "both ways, bounded",
        "crates/thalweg-cli/tests/peers/cyclone/lookups.rs large_types_of_cyclone_are_learned_across_a_link_that_loses_packets",
    ),
    shown(
        "§7.6.3.4",
        "endpoints match by assignable types",
        "the first member that differs is named",
        "it/assignability.rs a_type_that_does_not_fit_is_an_incompatible_policy_with_the_path_of_the_member",
    ),
    shown(
        "§7.6.3.4",
        "the same beside Cyclone DDS",
        "a table of pairs, both ways",
        "crates/thalweg-cli/tests/peers/cyclone/assignability.rs our_writers_and_readers_of_cyclone_match_as_the_table_says",
    ),
    shown(
        "§7.6.3.4",
        "INCONSISTENT_TOPIC",
        "`DomainParticipant::inconsistent_topic`",
        "it/entities.rs another_type_on_a_topic_is_told_as_its_inconsistency",
    ),
    shown(
        "§7.6.3.7",
        "TYPE_CONSISTENCY_ENFORCEMENT, each option",
        "`ReaderQos::type_consistency`",
        "it/entities.rs each_option_of_type_consistency_that_another_process_asks_for_permits_its_own_difference",
    ),
    shown(
        "§7.6.3.7",
        "force_type_validation",
        "honoured on both sides",
        "it/assignability.rs a_reader_that_forces_validation_matches_no_writer_that_is_silent_about_its_type",
    ),
    absent("§7.6.5", "built-in types of the standard", "absent: `DDS::String` and its like are four lines of IDL"),
    shown(
        "§7.6.7",
        "filters and queries over members",
        "`DataReaderBuilder::filter`, `query_condition`",
        "types/tests/attributes.rs filters_know_a_literal_by_its_name_in_idl",
    ),
    shown(
        "§7.6.8",
        "key hashes",
        "of the members in the order of their ids, XCDR2 big-endian or MD5",
        "types/tests/keys.rs dynamic_and_derived_types_have_the_same_key_hashes",
    ),
];
