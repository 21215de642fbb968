//! What is read of IDL, and what is refused.

mod dimensions;

use thalweg_cdr::description::{Structure, StructureMember};

use super::*;
use crate::assign;

#[track_caller]
fn structure(text: &str, name: &str) -> Arc<Structure> {
    let types = parse(text).unwrap_or_else(|error| panic!("{error}"));
    match types.find(name) {
        Some(Type::Structure(structure)) => Arc::clone(structure),
        other => panic!("{name} is {other:?}"),
    }
}

#[track_caller]
fn refused(text: &str, line: usize, part: &str) {
    let error = parse(text).expect_err("an error");
    assert!(error.line == line && error.problem.contains(part), "line {line}, {part:?} not in: {error}");
}

#[test]
fn a_topic_of_ros_is_understood() {
    let text = "
        #include \"std_msgs/msg/Header.idl\"
        // The time.
        module builtin_interfaces { module msg { module dds_ {
          @final struct Time_ { long sec; unsigned long nanosec; };
        }; }; };
        module sensor_msgs { module msg { module dds_ {
          typedef double double__9[9];
          @verbatim (language=\"comment\", text=\"with (brackets)\")
          @extensibility(FINAL)
          struct Imu_ {
            builtin_interfaces::msg::dds_::Time_ stamp; /* when */
            double__9 covariance;
            sequence<float, 3> gyro;
            string<16> frame_id, other;
          };
        }; }; };";
    let imu = structure(text, "sensor_msgs::msg::dds_::Imu_");
    assert_eq!(imu.extensibility, Extensibility::Final);
    let names: Vec<(&str, u32)> = imu.members.iter().map(|member| (&*member.name, member.id)).collect();
    assert_eq!(names, [("stamp", 0), ("covariance", 1), ("gyro", 2), ("frame_id", 3), ("other", 4)]);
    let double = || Box::new(Type::Primitive(Primitive::Float64));
    assert_eq!(*imu.members[1].member_type.resolved(), Type::Array { element: double(), count: 9 });
    assert_eq!(imu.members[4].member_type, Type::String { bound: Some(16) });
    assert_eq!(parse(text).expect("IDL").iter().count(), 3, "a type definition is one of them");
}

#[test]
fn a_modules_autoid_holds_for_what_says_nothing_else() {
    let text = "
        @autoid(HASH) module m {
          @mutable struct t { char c; };
          @autoid(SEQUENTIAL) @mutable struct u { char c; };
          module inner { @mutable union v switch (long) { case 1: char c; }; };
        };
        @mutable struct w { char c; };";
    let id = |name: &str| structure(text, name).members[0].id;
    // As Cyclone DDS's compiler has it.
    assert_eq!((id("m::t"), id("m::u"), id("w")), (0x0008_8a4a, 0, 0));
    let types = parse(text).expect("IDL");
    let Some(Type::Union(found)) = types.find("m::inner::v") else { panic!("a union") };
    assert_eq!(found.cases[0].id, 0x0008_8a4a);
}

#[test]
fn annotations_mean_what_the_standard_says() {
    let text = "
        const long SIZE = 4;
        enum Color { RED, @value(5) GREEN, BLUE };
        @bit_bound(8) enum Small { A };
        @mutable @nested(FALSE) struct Shape {
          @key @id(7) string<SIZE> name;
          @optional Color color;
          Small grid[2][SIZE];
        };
        @autoid(HASH) struct Hashed { long color; };
        struct Derived : Hashed { long more; };";
    let shape = structure(text, "Shape");
    assert_eq!(shape.extensibility, Extensibility::Mutable);
    let [name, color, grid] = &shape.members[..] else { panic!("three members") };
    assert!(name.is_key && name.id == 7);
    assert!(color.is_optional && !color.is_key && color.id == 8);
    let Type::Enumeration(colors) = &color.member_type else { panic!("an enumeration") };
    let literals: Vec<(&str, i32)> =
        colors.literals.iter().map(|literal| (literal.name.as_str(), literal.value)).collect();
    assert_eq!(literals, [("RED", 0), ("GREEN", 5), ("BLUE", 6)]);
    assert_eq!(colors.holder_bytes(), 4);
    let Type::Array { element, count: 2 } = &grid.member_type else { panic!("two rows") };
    let Type::Array { element, count: 4 } = &**element else { panic!("of four") };
    assert!(matches!(&**element, Type::Enumeration(small) if small.holder_bytes() == 1));
    // The example of DDS-XTypes 1.3 §7.3.1.2.1.1.
    assert_eq!(structure(text, "Hashed").members[0].id, 0x0fa5_dd70);
    let derived = structure(text, "Derived");
    assert_eq!(derived.members.iter().map(|member| &*member.name).collect::<Vec<_>>(), ["color", "more"]);
    assert_eq!(derived.extensibility, Extensibility::Appendable);
}

#[test]
fn what_is_not_understood_is_named_with_its_place() {
    refused("struct A {\n  fixed<3, 2> x;\n};", 2, "fixed is no data type");
    refused("interface I { void f(); };", 1, "\"interface\" is not understood");
    refused("struct A {\n  B b;\n};", 2, "no type B");
    refused("struct A { long x; long x; };", 1, "a member x");
    refused("struct A { long x };", 1, "expected \";\", found \"}\"");
    refused("struct A { string<0> x; };", 1, "0 is no size");
    refused("struct A; struct B { A a; };", 1, "declared and not defined");
    refused("struct A { A a; };", 1, "without end");
    refused("struct A { long x; }; struct A { long x; };", 1, "defined twice");
    refused("struct A { @key @optional long x; };", 1, "must not be optional");
    refused("struct A { map<double, long> x; };", 1, "keys of maps");
    refused("union U switch (double) { case 0: long x; };", 1, "the discriminator of a union");
    refused("union U switch (long) { case 0: long x; case 0: long y; };", 1, "the label 0 is taken");
    refused("union U switch (boolean) { default: long x; default: long y; };", 1, "one default case");
    refused("@bit_bound(65) bitmask M { A };", 1, "65 bits");
    refused("@bit_bound(33) enum E { A };", 1, "33 bits");
    refused("bitset B { bitfield<40> a; bitfield<40> b; };", 1, "more than 64 bits");
    refused("bitset B { bitfield<40> a; bitfield<40>; };", 1, "more than 64 bits");
    let names: Vec<String> = (0..=1_024).map(|number| format!("a{number}")).collect();
    refused(&format!("bitset B {{ bitfield<64> {}; }};", names.join(", ")), 1, "more than 64 bits");
    refused("const long N = 1 / 0;", 1, "cannot be computed");
    refused("struct A { long a[65536][65536]; };", 1, "more than 2^32 - 1 elements");
    refused("@mutable enum E { A };", 1, "never mutable");
    refused("struct A { sequence<@key long> a; };", 1, "@key is not supported on elements");
    refused("struct A {", 1, "found the end");
    refused("/* no end", 1, "comment without end");
    refused(
        &format!("struct A {{ {} long {} x; }};", "sequence<".repeat(100), ">".repeat(100)),
        1,
        "levels of nesting",
    );
    let error = parse("struct A {\n  long x;\n  Unknown y;\n};").expect_err("an error");
    assert_eq!((error.line, error.column), (3, 3), "{error}");
}

#[test]
fn numbers_that_could_never_be_written_are_refused_where_they_stand() {
    let place = |text: &str| {
        let error = parse(text).expect_err("an error");
        (error.line, error.column, error.problem)
    };
    let (line, column, problem) = place("@bit_bound(8)\nenum E {\n  @value(255) A,\n  B\n};");
    assert_eq!((line, column), (4, 3));
    assert_eq!(problem, "the value 256 does not fit into the 8 bits of the enumeration");
    let (line, column, problem) = place("@bit_bound(8) enum E {\n  @value(128) A,\n  @value(-1) B };");
    assert_eq!((line, column), (3, 14));
    assert_eq!(problem, "the value 128 does not fit into the 8 bits of the enumeration, one of them for the sign");
    refused("@bit_bound(3) enum E { @value(-5) A };", 1, "the value -5 does not fit into the 3 bits");
    for text in [
        "@bit_bound(8) enum E { @value(255) A };",
        "@bit_bound(8) enum E { @value(-128) A, @value(127) B };",
        "@bit_bound(1) enum E { A, B };",
        "enum E { @value(-2147483648) A, @value(2147483647) B };",
    ] {
        assert!(parse(text).is_ok(), "{text}");
    }
    let (line, column, problem) = place("union U switch (octet) {\n  case 256: long x;\n};");
    assert_eq!((line, column), (2, 8));
    assert_eq!(problem, "the label 256 does not fit into octet, which is 0 to 255");
    for (discriminator, fitting, beyond) in [
        ("boolean", "TRUE", "2"),
        ("int8", "-128", "-129"),
        ("short", "32767", "32768"),
        ("unsigned short", "65535", "65536"),
        ("unsigned long", "4294967295", "4294967296"),
        ("unsigned long long", "1", "-1"),
        ("char", "'\\xe9'", "256"),
        ("wchar", "65535", "65536"),
    ] {
        let text = |label: &str| format!("union U switch ({discriminator}) {{ case {label}: long x; }};");
        parse(&text(fitting)).unwrap_or_else(|error| panic!("{discriminator} {fitting}: {error}"));
        refused(&text(beyond), 1, "does not fit");
    }
}

#[test]
fn defaults_of_members_are_kept_and_read_back() {
    let text = r#"
        const long FIVE = 5;
        module a { enum Color { RED, GREEN }; };
        @bit_bound(8) bitmask Flags { A, B };
        typedef sequence<double> Row;
        @mutable struct All {
            @default(TRUE) boolean on; @default(-2) long n; @default(value=FIVE + 1) uint8 u; @default(0.25) float f; @default(1) double d;
            @default('x') char c; @default("a \"b\" \n") string<9> s, t; @default(a::GREEN) a::Color first; @default(GREEN) a::Color second;
            @default(3) Flags flags; @default("(1, 2.5)") Row row; @default("[[1,2],[3,4]]") short grid[2][2];
            @default("('p', 'q')") sequence<string> texts; @default(7) @optional long maybe; @default(9) long double q; long none;
        };
        union U switch (long) { case 0: @default(4) long x; case 1: long y; };
    "#;
    let all = structure(text, "All");
    let defaults: Vec<Option<&str>> = all.members.iter().map(|member| member.annotations.default.as_deref()).collect();
    let s = Some(r#""a \"b\" \n""#);
    let expected = [
        Some("true"),
        Some("-2"),
        Some("6"),
        Some("0.25"),
        Some("1"),
        Some("\"x\""),
        s,
        s,
        Some("\"GREEN\""),
        Some("\"GREEN\""),
        Some("3"),
        Some("[1,2.5]"),
        Some("[[1,2],[3,4]]"),
        Some(r#"["p","q"]"#),
        Some("7"),
        Some("9"),
        None,
    ];
    assert_eq!(defaults, expected);
    let types = parse(text).expect("IDL");
    let written = to_idl(types.iter());
    let again = parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    for found in types.iter() {
        assert_eq!(again.find(found.name().expect("a name")), Some(found), "{written}");
    }
    let rust =
        "struct A { @default(5) long n; @default(\"a\") string s; @default(B) E e; @default(\"[1]\") long row[1]; };";
    let types = parse(&format!("enum E {{ A0, B }}; {rust}")).expect("IDL");
    let rust = crate::rust::to_rust(types.iter()).expect("Rust");
    for attribute in ["default = 5", "default = \"a\".to_owned()", "default = E::B", "default = [1]"] {
        assert!(rust.contains(&format!("#[topic({attribute})]")), "{attribute} in {rust}");
    }
}

#[test]
fn defaults_that_do_not_fit_are_refused_where_they_stand() {
    let error = parse("struct A {\n  @default(300) octet x;\n};").expect_err("an error");
    assert_eq!((error.line, error.column), (2, 4), "{error}");
    refused("struct A {\n  @default(300) octet x;\n};", 2, "a whole number from 0 to 255 is needed, not 300");
    refused("struct A { @default string x; };", 1, "@default needs a value");
    refused("struct A { @default(\"abc\") string<2> x; };", 1, "3 bytes, where 2 are allowed");
    refused("enum E { A }; struct S { @default(B) E e; };", 1, "one of A (0) is needed");
    refused("struct I { long x; }; struct S { @default(1) I i; };", 1, "only numbers, booleans, texts");
    refused("struct A { @default(\"[1]\") long x[2]; };", 1, "1 elements, where there must be 2");
    refused("struct A { @default(NOWHERE) long x; };", 1, "no constant NOWHERE");
}

#[test]
fn a_text_of_many_shifts_takes_time_by_its_length() {
    // A look back over the definition for each would take minutes.
    let text =
        format!("const long N = 4096{}; struct A {{ sequence<sequence<long, 1 >> 0>> x; }};", " >> 0".repeat(300_000));
    let error = parse(&text).expect_err("in brackets, two signs end two types");
    assert!(error.problem.contains("is no name"), "{error}");
    let text = text.replace("1 >> 0>>", "N>>");
    let found = structure(&text, "A");
    let Type::Sequence { element, .. } = &found.members[0].member_type else { panic!("a sequence") };
    assert_eq!(**element, Type::Sequence { element: Box::new(Type::Primitive(Primitive::Int32)), bound: Some(4_096) });
}

#[test]
fn all_kinds_of_types_are_read() {
    let text = r#"
        const long BITS = 1 << 3 | 2; const string NAME = "a" "b\x41";
        @annotation Mine { long x default 3; };
        enum Color { RED, @value(4) GREEN };
        @bit_bound(10) bitmask Flags { A, @position(BITS - 1) B };
        bitset Bits { bitfield<3> a; bitfield<1> on; bitfield<4>; bitfield<10, short> c, d; };
        typedef sequence<sequence<wchar>, 4> Names;
        struct Base { @key long id; };
        @Mine(x = 2) @autoid(HASH) struct All : Base {
            long double ld; wstring<3> w; map<string<8>, Color, 5> m; Names names; Flags flags; Bits bits;
            @optional @external @unit("m") @range(min = -1, max = 1.5) @hashid("other") double r;
            @try_construct(TRIM) string<4> t; uint8 u; octet o;
        };
        @mutable union U switch (@key Color) { case RED: case GREEN: long a[2]; default: @id(9) All all; };
    "#;
    let types = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let all = structure(text, "All");
    let ids = |name: &str| all.members.iter().find(|member| *member.name == *name).expect("the member").id;
    assert_eq!((ids("id"), ids("ld"), ids("r")), (0, id_of_name("ld"), id_of_name("other")));
    assert_eq!(all.own_members().len() + 1, all.members.len());
    let Some(Type::Union(union)) = types.find("U") else { panic!("a union") };
    assert!(union.is_keyed && union.cases[0].labels == [0, 4] && union.cases[1].is_default && union.cases[1].id == 9);
    let Some(Type::Bitset(bits)) = types.find("Bits") else { panic!("a bit set") };
    let fields: Vec<(&str, u16, u8)> =
        bits.fields.iter().map(|field| (field.name.as_str(), field.position, field.bits)).collect();
    assert_eq!(fields, [("a", 0, 3), ("on", 3, 1), ("c", 8, 10), ("d", 18, 10)]);
    let Some(Type::Bitmask(flags)) = types.find("Flags") else { panic!("a bit mask") };
    assert_eq!((flags.bit_bound, flags.flags[1].1), (10, 9));
}

#[test]
fn a_text_that_was_written_reads_back_as_the_same_types() {
    let text = r#"
        module a { enum Color { RED, @value(4) @default_literal GREEN }; typedef string<8> _struct;
          module b { @final struct Base { @key long id; }; };
        };
        @bit_bound(10) bitmask Flags { A, @position(9) B };
        bitset Bits { bitfield<3> a; bitfield<4>; bitfield<10, short> c; bitfield<2>; };
        typedef long Grid[2][3];
        @nested @final struct All : a::b::Base {
            a::Color color; a::_struct s; map<long, wstring<4>, 9> m; Grid grid[4]; Flags f; Bits b;
            @id(77) @optional @unit("k\"m") @min(-1) @max(4) long long l; uint8 u; octet o; long double d; wchar w; long last;
        };
        @mutable union U switch (char) { case 'a': case 'b': All all; default: @id(5) sequence<boolean, 300> z; };
        @autoid(HASH) @appendable struct H { long x; @hashid("q") long y; @hashid long z; @id(3) long w; };
    "#;
    let types = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let written = to_idl(types.iter());
    let again = parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    for found in types.iter() {
        assert_eq!(again.find(found.name().expect("a name")), Some(found), "{written}");
    }
}

#[test]
fn arrays_of_elements_get_a_name_because_idl_has_none_without() {
    // Type objects may say so; the text of IDL cannot.
    let point = parse("module a { @final struct Point { long x; }; };").expect("IDL").find("a::Point").cloned();
    let array = |element: Type, count| Type::Array { element: Box::new(element), count };
    let row = |element: Type| Type::Sequence { element: Box::new(element), bound: Some(4) };
    let texts = array(array(Type::String { bound: Some(3) }, 3), 2);
    let places = array(point.expect("the type"), 2);
    let by_key =
        Type::Map { key: Box::new(Type::String { bound: None }), element: Box::new(texts.clone()), bound: None };
    let members = [row(texts), row(places), by_key];
    let members = (0..).zip(members).map(|(id, of)| StructureMember::new(&format!("m{id}"), id, of)).collect();
    let extensibility = thalweg_cdr::Extensibility::Appendable;
    let name = "a::Rows".to_owned();
    let rows = Structure { name, extensibility, base: None, members, is_nested: false, has_hashed_ids: false };
    let rows = Type::Structure(std::sync::Arc::new(rows));
    let text = to_idl([&rows]);
    assert_eq!(text.matches("typedef string<3> Array_of_string_3c_3_3e__by2_by3[2][3];").count(), 1, "{text}");
    let again = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let again = again.find("a::Rows").expect("the type");
    let all = assign::Permitted::default();
    assert_eq!((assign::check(&rows, again, all), assign::check(again, &rows, all)), (Ok(()), Ok(())), "{text}");
}

#[test]
fn a_file_is_read_with_those_that_it_includes() {
    let folder = std::env::temp_dir().join(format!("thalweg-idl-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("sub")).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
    write("sub/base.idl", "#include \"../main.idl\"\nstruct Base { long x; };");
    write("good.idl", "struct Good { long x; };");
    write("main.idl", "#include \"sub/base.idl\"\nstruct Main { Base base; };");
    write("bad.idl", "#pragma once\n#include \"good.idl\"\nstruct Bad {\n Nothing base; };");
    let types = parse_file(&folder.join("main.idl"), &Reading::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(types.find("Main").is_some() && types.find("Base").is_some());
    let error = parse_file(&folder.join("bad.idl"), &Reading::default()).expect_err("an error").to_string();
    assert!(error.contains("bad.idl:4:2: there is no type Nothing"), "{error}");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn no_annotation_takes_a_global_name_for_its_own() {
    let text = "module a { enum E { A, B }; struct P { long x; }; struct T { @optional P p; @key E e; @hashid P q; };
        union U switch (@key E) { case A: @external P p; }; };";
    let types = parse(text).expect("IDL");
    let written = to_idl(types.iter());
    let again = parse(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    let ids = |types: &Definitions| match types.find("a::T").map(Type::resolved) {
        Some(Type::Structure(structure)) => structure.members.iter().map(|member| member.id).collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    assert_eq!(ids(&again), ids(&types), "{written}");
    assert_eq!(again.find("a::U"), types.find("a::U"), "{written}");
}

/// The names of the types of a text.
fn names(text: &str, defines: &[&str]) -> Result<Vec<String>, String> {
    let defines = defines.iter().map(|define| (*define).to_owned()).collect();
    let types = parse_as(text, &Reading { defines, ..Reading::default() }).map_err(|error| error.to_string())?;
    Ok(types.iter().filter_map(|one| one.name().map(str::to_owned)).collect())
}

#[test]
fn only_the_branches_whose_conditions_hold_are_read() {
    let text = "#ifndef GUARD // once\n#define GUARD\n#ifdef BIG\nstruct A { double x; };\n#else /* isn't */\nstruct B { long x; };
        #endif\n#if defined(BIG) && (LEVEL * 2 >= 0x0a || !1) // it's so\nstruct C { long x; };\n#elif LEVEL\nstruct D { long x; };
        #elif 1 / 0\n#else\nstruct E { long x; };\n#endif\n#endif\nstruct F { long x; };";
    let levels: [(&[&str], &[&str]); 4] = [
        (&["BIG", "LEVEL=5"], &["A", "C", "F"]),
        (&["BIG", "LEVEL=4"], &["A", "D", "F"]),
        (&["LEVEL=5"], &["B", "D", "F"]),
        (&["GUARD"], &["F"]),
    ];
    for (defines, expected) in levels {
        assert_eq!(names(text, defines).unwrap(), expected, "{defines:?}");
    }
    assert!(names(text, &[]).unwrap_err().contains("1 / 0 has no value"));
    let skipped = "#if 0\n#error don't\n#unheard of\n it's no IDL \"at all\n#if nested\n#else\n struct X {\n#endif\n#endif\nstruct Y { long x; };";
    assert_eq!(names(skipped, &[]).unwrap(), ["Y"]);
    assert_eq!(
        names("#if 0 && 1 / 0 || (1 ? 2 : 1 % 0) == 2 && -1 < ~0 << 1 ^ 3\nstruct X { long x; };\n#endif", &[])
            .unwrap(),
        ["X"]
    );
}

#[test]
fn macros_stand_for_their_text_and_never_for_themselves() {
    let text = "#define SIZE (2 * \\\n WIDTH) /* a\n comment */\n#define WIDTH 4\n#define INNER sequence<long, SIZE>
        #define OWN OWN\n#define LONE(x) x\nstruct OWN { sequence<INNER> rows; string<WIDTH> text; };\n#undef WIDTH
        const long WIDTH = 9; struct Last { string<WIDTH> text; };";
    let types = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let plain =
        parse("struct OWN { sequence<sequence<long, 8>> rows; string<4> text; }; struct Last { string<9> text; };");
    let plain = plain.expect("IDL");
    assert_eq!((types.find("OWN"), types.find("Last")), (plain.find("OWN"), plain.find("Last")));
    let bomb: String = (0..60).map(|level| format!("#define A{level} A{0} A{0}\n", level + 1)).collect();
    for (wrong, problem) in [
        ("#define LONE(x) x\nstruct T { LONE(long) x; };", "line 2, column 12: the macro LONE has parameters"),
        ("#if 1\nstruct T { long x; };", "an #if without its #endif"),
        ("#else", "#else without an #if"),
        ("#if 1\n#else\n#elif 1\n#endif", "3, column 1: #elif behind the #else"),
        ("#if (1\n#endif", "\"(\" without \")\""),
        ("#if 1 +\n#endif", "lacks an operand"),
        ("#if 1 2\n#endif", "\"2\" in a condition"),
        ("#ifdef\n#endif", "#ifdef without a name"),
        ("#error not today", "#error not today"),
        ("#defin X", "#defin is no directive"),
        ("#include NAME", "#include names no file"),
        (&format!("{bomb}struct T {{ A0 x; }};"), "macros stand for more than"),
        (&format!("{bomb}#if A0\n#endif"), "a condition of more than"),
        (&"#if 1\n".repeat(65), "more than 64 conditions"),
        (&format!("#if {}1", "(".repeat(65)), "more than 64 operands"),
    ] {
        let error = names(wrong, &[]).expect_err(problem);
        assert!(error.contains(problem), "{error}");
    }
    assert!(names("", &["1=2"]).unwrap_err().contains("defines no macro"));
    assert_eq!(names("# 1 \"file.idl\" 2\n#pragma once\n#\nstruct T { long x; };", &[]).unwrap(), ["T"]);
}

#[test]
fn a_comment_sign_within_a_comment_or_a_quoted_text_opens_nothing() {
    let definitions = "struct A { long x; };\nstruct B { long x; }; /* more */\nstruct C { string<N> x; };";
    for line in [
        "#define N 4 // see msgs/*",
        "#define N 4 // see msgs/* \\\n and srv/*",
        "#include \"msgs/*.idl\"\n#define N 4",
        "#include \"geometry.idl\" // replaces common/*.idl\n#define N 4",
        "#define N 4 /* over // two\n lines */ // and msgs/*",
        "#define N /* \"one\" */ 4 // it's in msgs/*",
        "#define N 4 \\\n // \"msgs/*",
        "#pragma don't /* over\n lines */\n#define N 4",
    ] {
        let text = format!("{line}\n{definitions}");
        assert_eq!(names(&text, &[]).as_deref(), Ok(&["A", "B", "C"].map(str::to_owned)[..]), "{line}");
    }
    let skipped = "#if 0\nconst string FILES = \"msgs/*\"; // don't\nit's \"open // \\\n#else\nstruct A { long x; };\n#endif\nstruct B { long x; };";
    assert_eq!(names(skipped, &[]).unwrap(), ["A", "B"]);
}

#[test]
fn macros_that_stand_for_nothing_end_as_well() {
    let chain: String = (0..60).map(|level| format!("#define A{level} A{0} A{0}\n", level + 1)).collect();
    for (use_of_it, problem) in
        [("struct T { A0 long x; };", "macros stand for more than"), ("#if A0 1\n#endif", "a condition of more than")]
    {
        let (sender, receiver) = std::sync::mpsc::channel();
        let text = format!("{chain}#define A60\n{use_of_it}");
        std::thread::spawn(move || sender.send(names(&text, &[])));
        let read = receiver.recv_timeout(std::time::Duration::from_secs(60)).expect("it ends");
        let error = read.expect_err(problem);
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn keys_that_older_tools_mark_are_not_lost_in_silence() {
    let with = |pragma: &str| format!("struct Msg {{ long id; string text; }};\n{pragma}\n");
    refused(
        &with("#pragma keylist Msg id"),
        2,
        "#pragma keylist is not followed; mark the key members of Msg with @key",
    );
    refused(&with("#pragma DCPS_DATA_KEY \"Msg id\""), 2, "mark the key members of Msg with @key");
    for pragma in ["#pragma keylist Msg", "#pragma once", "#pragma DCPS_DATA_TYPE \"Msg\""] {
        assert!(parse(&with(pragma)).is_ok(), "{pragma}");
    }
}

#[test]
fn a_name_of_a_stranger_stays_on_its_line() {
    let plain = structure("@final struct A { long x; };", "A");
    let mut forged = Structure::clone(&plain);
    forged.name = "A\n{ long y; };\r\nstruct B".to_owned();
    forged.members[0].name = "x;\n  long z".into();
    let text = to_idl([&Type::Structure(Arc::new(forged))]);
    assert_eq!(text.lines().count(), to_idl([&Type::Structure(plain)]).lines().count(), "{text}");
    assert!(text.contains("x;\\u000a  long z;") && !text.contains('\r'), "{text}");
}
