//! Pairs of types that fit, and pairs that do not, with the place.

use thalweg_cdr::description::{Enumeration, Literal};

use super::*;
use crate::idl;

/// Checks what is said of a writer with type `W` of the first text and a reader with type `R` of the second.
#[track_caller]
fn check_as(writer: &str, reader: &str, permitted: Permitted, expect: &str) {
    let one = |text: &str| {
        let types = idl::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        types.find("T").expect("T").clone()
    };
    let said = check(&one(writer), &one(reader), permitted).map_or_else(|why| why.to_string(), |()| String::new());
    assert_eq!(said, expect, "{writer} -> {reader}");
}

#[track_caller]
fn fits(writer: &str, reader: &str, expect: &str) {
    check_as(writer, reader, Permitted::default(), expect);
}

#[test]
fn members_are_compared_by_extensibility() {
    fits("@final struct T { long a; };", "@final struct T { long a; };", "");
    fits("@final struct T { long a; };", "@final struct T { long a; long b; };", "b: the writer's final type lacks it");
    fits("@final struct T { long a; long b; };", "@final struct T { long a; };", "b: the reader's final type lacks it");
    fits("@appendable struct T { long a; };", "@appendable struct T { long a; long b; };", "");
    fits("@appendable struct T { long a; long b; };", "@appendable struct T { long a; };", "");
    fits(
        "@mutable struct T { @id(1) long a; @id(2) long b; };",
        "@mutable struct T { @id(2) long b; @id(3) long c; };",
        "",
    );
    fits(
        "@mutable struct T { @id(1) long a; };",
        "@mutable struct T { @id(2) long b; };",
        "they have no member in common",
    );
    fits(
        "@final struct T { long a; };",
        "@appendable struct T { long a; };",
        "the writer's type is final, the reader's appendable",
    );
    fits("@final struct T { long a; };", "@final struct T { short a; };", "a: the writer has long, the reader short");
    fits("@final struct T { long a; };", "@final struct T { long b; };", "a: the reader calls member 0 \"b\"");
    fits(
        "@mutable struct T { @id(1) long a; @id(5) long c; };",
        "@mutable struct T { @id(2) long a; @id(5) long c; };",
        "a: it has the id 1, that of the reader 2",
    );
    fits("@final struct T { @key long a; };", "@final struct T { long a; };", "a: it is a key at the writer alone");
    fits(
        "@final struct T { long a; @optional long b; };",
        "@final struct T { long a; long b; };",
        "b: it is optional at the writer alone",
    );
    fits("@mutable struct T { @optional long b; };", "@mutable struct T { long b; };", "");
    fits(
        "@mutable struct T { long a; @must_understand long b; };",
        "@mutable struct T { long a; };",
        "b: it must be understood, and the reader lacks it",
    );
    fits(
        "@mutable struct T { long a; @key long b; };",
        "@mutable struct T { long a; };",
        "b: it is a key, and the reader lacks it",
    );
    fits("@final struct T {};", "@final struct T {};", "");
}

#[test]
fn the_path_names_the_first_member_that_differs() {
    let inner = |of: &str| {
        format!(
            "@final struct P {{ {of} x; }}; @final struct Q {{ sequence<P> ps[2]; }}; @final struct T {{ long a; Q q; }};"
        )
    };
    fits(&inner("double"), &inner("float"), "q.ps[][].x: the writer has double, the reader float");
    let union = |of: &str| format!("@final union U switch (long) {{ case 1: {of} x; }}; @final struct T {{ U u; }};");
    fits(&union("string"), &union("long"), "u.x: the writer has a string, the reader long");
}

#[test]
fn bounds_are_compared_where_the_reader_wants_it() {
    let strict = Permitted { sequence_bounds: false, string_bounds: false, ..Permitted::default() };
    let (long, short) = ("@final struct T { string<9> a; };", "@final struct T { string<8> a; };");
    fits(long, short, "");
    check_as(long, short, strict, "a: a text with a bound of 9 does not fit into one with a bound of 8");
    check_as(short, long, strict, "");
    let (long, short) = ("@final struct T { sequence<long> a; };", "@final struct T { sequence<long, 8> a; };");
    fits(long, short, "");
    check_as(long, short, strict, "a: a sequence with no bound does not fit into one with a bound of 8");
    fits(
        "@final struct T { @key string<9> a; };",
        "@final struct T { @key string<8> a; };",
        "a: a text with a bound of 9 does not fit into one with a bound of 8",
    );
    fits(
        "@final struct T { long a[3]; };",
        "@final struct T { long a[4]; };",
        "a: the writer has 3 elements, the reader 4",
    );
    let (long, short) = ("@final struct T { map<long, long> a; };", "@final struct T { map<long, long, 2> a; };");
    check_as(long, short, strict, "a: a map with no bound does not fit into one with a bound of 2");
}

#[test]
fn names_and_widening_are_the_readers_choice() {
    let names = Permitted { member_names: true, ..Permitted::default() };
    check_as("@final struct T { long a; };", "@final struct T { long b; };", names, "");
    let narrow = Permitted { widening: false, ..Permitted::default() };
    let (old, new) = ("@appendable struct T { long a; };", "@appendable struct T { long a; long b; };");
    check_as(old, new, narrow, "b: the writer lacks it, and the reader prevents widening");
    check_as(new, old, narrow, "b: the reader lacks it, and the reader prevents widening");
    let optional = "@appendable struct T { long a; @optional long b; };";
    check_as(old, optional, narrow, "");
    check_as(optional, old, narrow, "");
    let union = |cases: &str| format!("@appendable union T switch (long) {{ case 1: long a; {cases} }};");
    check_as(&union("case 2: long b;"), &union(""), narrow, "the labels differ, and the reader prevents widening");
    check_as(&union("case 2: long b;"), &union(""), Permitted::default(), "");
}

#[test]
fn members_of_a_final_type_stand_in_the_same_places() {
    let text = |members: &str| format!("@final struct T {{ {members} }};");
    fits(
        &text("@id(0) long a; @id(1) long b;"),
        &text("@id(1) long b; @id(0) long a;"),
        "where the writer has \"a\", the reader has \"b\"",
    );
}

#[test]
fn cases_are_counted_from_0_or_from_1_and_their_ids_do_not_travel() {
    let of = |extensibility: &str, first: &str, second: &str| {
        format!("@{extensibility} union T switch (long) {{ case 1: {first} long x; case 2: {second} short y; }};")
    };
    for extensibility in ["final", "appendable"] {
        let (from_0, from_1) = (of(extensibility, "", ""), of(extensibility, "@id(1)", "@id(2)"));
        fits(&from_0, &from_1, "");
        fits(&from_1, &from_0, "");
        fits(&from_0, &of(extensibility, "@id(1)", "@id(7)"), "x: it has the id 0, that of the reader 1");
        let renamed =
            format!("@{extensibility} union T switch (long) {{ case 1: @id(1) long x; case 2: @id(2) short z; }};");
        fits(&from_0, &renamed, "x: it has the id 0, that of the reader 1");
    }
    fits(
        &of("mutable", "@id(1)", "@id(2)"),
        &of("mutable", "@id(2)", "@id(3)"),
        "x: it has the id 1, that of the reader 2",
    );
}

#[test]
fn an_enumeration_that_does_not_tell_its_extensibility_has_that_of_the_other() {
    let of = |extensibility, count: i32| {
        let literals = (0..count).map(|value| Literal { name: format!("L{value}"), value }).collect();
        let enumeration = Enumeration { name: "E".to_owned(), literals, default: 0, bit_bound: 32, extensibility };
        Type::Enumeration(Arc::new(enumeration))
    };
    let check = |one: &Type, other: &Type| check(one, other, Permitted::default()).is_ok();
    let [is_final, is_appendable] = [Some(Extensibility::Final), Some(Extensibility::Appendable)];
    assert!(check(&of(None, 2), &of(is_final, 2)) && check(&of(is_final, 2), &of(None, 2)));
    assert!(!check(&of(None, 2), &of(is_final, 3)) && !check(&of(is_final, 3), &of(None, 2)));
    assert!(check(&of(None, 2), &of(is_appendable, 3)) && check(&of(None, 2), &of(None, 3)));
    assert!(!check(&of(is_final, 2), &of(is_appendable, 2)));
}

#[test]
fn in_xcdr1_only_what_tells_its_end_may_have_other_members() {
    let xcdr1 = Permitted { nested_differences: false, ..Permitted::default() };
    let text = |more: &str, within: &str| {
        format!(
            "@appendable struct I {{ long a; {more} }}; @appendable union U switch (long) {{ case 1: I i; }};
             @mutable struct M {{ @id(7) I i; }}; {within}"
        )
    };
    let why = "the reader lacks it, and XCDR1 does not tell where a type within another ends";
    for (within, path) in [
        ("@appendable struct T { I i; long z; };", "i.b: "),
        ("@final struct T { sequence<I> i; };", "i[].b: "),
        ("@final struct T { I i[2]; };", "i[].b: "),
        ("@appendable struct T { map<long, I> i; };", "i[].b: "),
        ("@final struct T { U u; };", "u.i.b: "),
        ("@mutable struct T { @id(3) sequence<I> i; };", "i[].b: "),
    ] {
        let (new, old) = (text("long b;", within), text("", within));
        check_as(&new, &old, xcdr1, &format!("{path}{why}"));
        check_as(&old, &new, xcdr1, &format!("{path}{}", why.replace("reader", "writer")));
        check_as(&new, &old, Permitted::default(), "");
    }
    for within in [
        "@appendable struct T { @optional I i; long z; };",
        "@mutable struct T { @id(3) I i; };",
        "@final struct T { M m; };",
        "@final struct T { sequence<M> m; };",
    ] {
        check_as(&text("long b;", within), &text("", within), xcdr1, "");
    }
    let (new, old) = ("@appendable struct T { long a; long b; };", "@appendable struct T { long a; };");
    check_as(new, old, xcdr1, "");
    let union = |cases: &str| {
        format!("@appendable union U switch (long) {{ case 1: long a; {cases} }}; @final struct T {{ U u; }};")
    };
    let why = "u: the labels differ, and XCDR1 does not tell where a union within another ends";
    check_as(&union("case 2: long b;"), &union(""), xcdr1, why);
    check_as(&union("case 2: long b;"), &union(""), Permitted::default(), "");
}

#[test]
fn types_of_many_members_are_compared_at_once() {
    let count = 5_000;
    let members = |from: usize| (from..from + count).map(|id| format!("@id({id}) long m{id};")).collect::<String>();
    let text = |from| format!("@mutable struct T {{ {} }};", members(from));
    // Each of them is looked up, and not looked for among all others.
    fits(&text(0), &text(count - 1), "");
    let cases = (0..count).map(|label| format!("case {label}: long m{label};")).collect::<String>();
    let union = format!("@appendable union T switch (long) {{ {cases} }};");
    fits(&union, &union, "");
    let literals = (0..count).map(|value| format!("L{value}")).collect::<Vec<_>>().join(", ");
    let enumeration = format!("@appendable enum E {{ {literals} }}; @final struct T {{ E e; }};");
    fits(&enumeration, &enumeration, "");
}

/// The type `T` of a text of IDL.
#[track_caller]
fn type_of(text: &str) -> Type {
    idl::parse(text).expect("IDL").find("T").expect("T").clone()
}

#[test]
fn an_enumeration_that_many_members_have_is_compared_once() {
    let literals = (0..200).map(|value| format!("L{value}")).collect::<Vec<_>>().join(", ");
    let members: String = (0..200).map(|number| format!("E m{number}; ")).collect();
    let text = format!("enum E {{ {literals} }}; struct T {{ {members} }};");
    let [one, other] = [(); 2].map(|()| type_of(&text));
    let (fits, steps) = check_counted(&one, &other, Permitted::default());
    assert_eq!(fits, Ok(()));
    // The literals and members of both sides, and a use for each member.
    assert!((1_000..1_010).contains(&steps), "{steps}");
}

#[test]
fn what_the_cases_of_unions_select_in_all_combinations_is_compared_within_a_bound() {
    // Each of forty structures here meets each of forty there.
    let count = 40;
    let text = |is_by_row: bool| {
        let structures: String = (0..count).map(|number| format!("struct S{number} {{ long a; long b; }}; ")).collect();
        let cases = (0..count).map(|case| {
            let label = |other: usize| if is_by_row { case * count + other } else { other * count + case };
            let labels: String = (0..count).map(|other| format!("case {}: ", label(other))).collect();
            format!("{labels} S{case} m{case}; ")
        });
        format!("{structures} @appendable union T switch (long) {{ {} }};", cases.collect::<String>())
    };
    let [one, other] = [true, false].map(|is_by_row| type_of(&text(is_by_row)));
    let permitted = Permitted { member_names: true, ..Permitted::default() };
    let (fits, steps) = check_counted(&one, &other, permitted);
    // Of each pair its use, two members on both sides, and their uses.
    assert_eq!(fits, Ok(()));
    assert!((7 * count * count..10 * count * count).contains(&steps), "{steps}");
    let (fits, bounded) = check_within(&one, &other, permitted, steps / 2);
    let why = fits.expect_err("it is too much").why;
    assert_eq!(why, format!("they have more than {} parts, which are not compared", steps / 2));
    assert!(bounded < steps / 2 + 10, "{bounded}");
}

#[test]
fn enumerations_bit_masks_and_unions_are_compared() {
    let of = |text: &str| format!("{text} @final struct T {{ E e; }};");
    fits(&of("@appendable enum E { A, B };"), &of("@appendable enum E { A, B, C };"), "");
    fits(
        &of("@final enum E { A, B };"),
        &of("@final enum E { A, B, C };"),
        "e: the writer lacks a literal of the reader",
    );
    fits(
        &of("@appendable enum E { A, B };"),
        &of("@appendable enum E { B, A };"),
        "e: the literal A has another value or name at the reader",
    );
    fits(
        &of("@bit_bound(8) enum E { A };"),
        &of("@bit_bound(16) enum E { A };"),
        "e: an enumeration of 8 bits is not one of 16",
    );
    fits(&of("@bit_bound(8) bitmask E { A };"), &of("typedef uint8 E;"), "");
    fits(
        &of("@bit_bound(8) bitmask E { A };"),
        &of("typedef uint16 E;"),
        "e: the writer has a bit mask, the reader unsigned short",
    );
    let union = |cases: &str| format!("@appendable union T switch (long) {{ {cases} }};");
    fits(&union("case 1: long a;"), &union("case 1: long a; case 2: string b;"), "");
    fits(&union("case 1: long a;"), &union("case 2: @id(7) string b;"), "they have no case in common");
    fits(
        &union("case 1: long a; default: long z;"),
        &union("case 1: long a; default: string z;"),
        "z: the writer has long, the reader a string",
    );
    let last = "@final union T switch (long) { case 1: long a; };";
    fits(
        last,
        "@final union T switch (long) { case 1: long a; case 2: long b; };",
        "the labels of a final union differ",
    );
    fits(
        last,
        "@final union T switch (short) { case 1: long a; };",
        "discriminator: the writer has long, the reader short",
    );
    fits("@final struct T { octet a; };", "@final struct T { uint8 a; };", "a: the writer has octet, the reader uint8");
}

/// Pairs of types, each with what Cyclone DDS 11.0.1 says of a writer of the first and a reader of the second;
/// `peers/cyclone-py/pairs.py` writes it.
const OF_CYCLONE: &str = include_str!("../../testdata/assignability/pairs.txt");

/// Pairs that Cyclone DDS lets match against the standard: a member of one name has different ids (DDS-XTypes 1.3 §7.2.4.4.5), and a
/// member is a key of the reader alone, so that instances differ.
const REFUSED_HERE: [&str; 2] = [
    "yes | @mutable struct T { @id(1) long a; @id(5) long c; }; | @mutable struct T { @id(2) long a; @id(5) long c; };",
    "yes | @final struct T { @key long a; long b; }; | @final struct T { @key long a; @key long b; };",
];

#[test]
fn verdicts_are_those_of_cyclone() {
    let mut differences = Vec::new();
    let is_common = |line: &&str| !REFUSED_HERE.contains(line);
    for line in OF_CYCLONE.lines().filter(is_common) {
        let [verdict, writer, reader] = line.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let one = |text: &str| {
            let types = idl::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
            types.find("T").expect("T").clone()
        };
        let ours = check(&one(writer), &one(reader), Permitted::default());
        if ours.is_ok() != (verdict == "yes") {
            differences.push(format!("{line}\n  here: {ours:?}"));
        }
    }
    assert!(OF_CYCLONE.lines().count() >= 60);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn types_that_contain_themselves_are_assignable_unless_something_differs() {
    let tree = "@appendable struct T { long x; sequence<T> ts; };";
    fits(tree, tree, "");
    fits(tree, "@appendable struct T { long x; sequence<T> ts; string more; };", "");
    fits(tree, "@appendable struct T { short x; sequence<T> ts; };", "x: the writer has long, the reader short");
    // The same values, told by other circles.
    let two = "@appendable struct T; @appendable struct U { long x; sequence<T> ts; };
        @appendable struct T { long x; sequence<U> ts; };";
    fits(tree, two, "");
    fits(two, tree, "");
    let differs = "@appendable struct T; @appendable struct U { float x; sequence<T> ts; };
        @appendable struct T { long x; sequence<U> ts; };";
    fits(tree, differs, "ts[].x: the writer has long, the reader float");
    let ends = "@appendable struct U { long x; sequence<long> ts; }; @appendable struct T { long x; sequence<U> ts; };";
    fits(tree, ends, "ts[].ts[]: the writer has a structure, the reader long");
    fits(ends, tree, "ts[].ts[]: the writer has long, the reader a structure");
}

#[test]
fn what_may_differ_in_a_value_must_not_in_a_key_of_the_same_type() {
    let text = |bound: &str| {
        format!("@final struct P {{ string{bound} s; sequence<P> ps; }}; @final struct T {{ P p; @key P k; }};")
    };
    fits(&text("<9>"), &text("<4>"), "k.s: a text with a bound of 9 does not fit into one with a bound of 4");
}

#[test]
fn circles_of_lengths_without_a_common_part_are_compared_or_refused_and_never_overflow() {
    let circle = |length: usize| {
        let parts = (0..length).map(|index| {
            let (own, next) = (format!("T{index}"), format!("T{}", (index + 1) % length));
            format!("@final struct {next}; @final struct {own} {{ @optional {next} next; }};")
        });
        let types = idl::parse(&parts.collect::<String>()).expect("IDL");
        types.find("T0").expect("the first").clone()
    };
    let permitted = Permitted { member_names: true, ..Permitted::default() };
    assert_eq!(check(&circle(5), &circle(7), permitted), Ok(()));
    let error = check(&circle(251), &circle(256), permitted).expect_err("too deep").to_string();
    assert!(error.contains("which is not compared"), "{error}");
}

#[test]
fn each_label_selects_what_fits_on_both_sides() {
    let of = |cases: &str| format!("@appendable union T switch (long) {{ {cases} }};");
    let with_default = of("case 1: long a; default: @id(9) string z;");
    fits(&with_default, &of("case 1: long a; case 2: double b;"), "z: the writer has a string, the reader double");
    fits(&with_default, &of("case 1: long a; case 2: string b; default: @id(9) string z;"), "");
    fits(&of("case 1: long a; case 2: double b;"), &with_default, "b: the writer has double, the reader a string");
    fits(&of("default: long a;"), &of("default: long a;"), "");
    let apart = [("case 1: @id(7) long a;"), ("case 2: @id(8) long b;")]
        .map(|case| of(&format!("{case} default: @id(9) long c;")));
    fits(&apart[0], &apart[1], "they have no case in common");
}

#[test]
fn cases_have_one_name_and_one_id() {
    let mutable = |id| format!("@mutable union T switch (long) {{ case 1: @id({id}) long a; }};");
    fits(&mutable(5), &mutable(6), "a: it has the id 5, that of the reader 6");
    let named = |name: &str| format!("@final union T switch (long) {{ case 1: long {name}; }};");
    fits(&named("a"), &named("b"), "a: the reader calls member 0 \"b\"");
    let any_name = Permitted { member_names: true, ..Permitted::default() };
    check_as(&named("a"), &named("b"), any_name, "");
}

#[test]
fn of_a_key_its_own_key_members_count_and_of_other_members_none() {
    let keyed = |note: &str| {
        format!("@appendable struct P {{ @key long id; {note} note; }}; @appendable struct T {{ @key P p; }};")
    };
    fits(&keyed("string<9>"), &keyed("string<8>"), "");
    let by_name = |bound: u8| format!("struct P {{ @key string<{bound}> id; long x; }}; struct T {{ @key P p; }};");
    fits(&by_name(9), &by_name(8), "p.id: a text with a bound of 9 does not fit into one with a bound of 8");
    let part = |mark: &str, outer: &str| {
        format!("@appendable struct P {{ {mark} long id; long x; }}; @appendable struct T {{ long y; {outer} P p; }};")
    };
    fits(&part("@key", ""), &part("", ""), "");
    fits(&part("@key", "@key"), &part("", "@key"), "p.x: it is a part of the key at the reader alone");
    let literals =
        |literals: &str| format!("@appendable enum E {{ {literals} }}; @final struct T {{ @key E e; long rest; }};");
    fits(&literals("A, B"), &literals("@value(1) B"), "e: the reader lacks the literal A");
    fits(&literals("@value(1) B"), &literals("A, B"), "");
    fits(
        "@mutable struct T { @id(1) long a; @id(2) @optional @must_understand long b; };",
        "@mutable struct T { @id(1) long a; };",
        "",
    );
}
