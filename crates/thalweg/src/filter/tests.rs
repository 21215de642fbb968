use super::*;
use crate::Topic;

#[derive(Topic, Clone, Copy, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr")]
enum Level {
    Low,
    High = 5,
}

#[derive(Topic, Clone, Debug)]
#[topic(crate = "thalweg_cdr")]
struct Inner {
    y: f64,
    tags: Vec<String>,
}

#[derive(Topic, Clone, Debug)]
#[topic(crate = "thalweg_cdr")]
struct Sample {
    color: String,
    size: i32,
    big: u64,
    ok: bool,
    letter: char,
    level: Level,
    at: Inner,
    row: [i16; 3],
    maybe: Option<u8>,
    weight: f32,
    code: String,
}

fn sample() -> Sample {
    Sample {
        color: "RED".into(),
        size: -7,
        big: u64::MAX,
        ok: true,
        letter: 'q',
        level: Level::High,
        at: Inner { y: 2.5, tags: vec!["a".into(), "it's".into()] },
        row: [1, 2, 3],
        maybe: None,
        weight: 0.1,
        code: "42".into(),
    }
}

/// Whether the sample is accepted, or what is wrong with the filter.
fn judge(expression: &str, parameters: &[&str]) -> Result<bool, String> {
    let filter = Filter::parse(expression, parameters).map_err(|error| error.to_string())?;
    filter.check::<Sample>().map_err(|error| error.to_string())?;
    Ok(filter.accepts(&sample()))
}

#[track_caller]
fn check(expression: &str, expect: bool) {
    assert_eq!(judge(expression, &["'RED'", "RED", "-7", "1e1", "true"]), Ok(expect), "{expression}");
}

#[test]
fn comparisons_follow_the_kinds_of_their_values() {
    for (expression, expect) in [
        ("color = 'RED'", true),
        ("'RED' = color", true),
        ("color <> \"RED\"", false),
        ("color < 'SED' and color > 'READ'", true),
        ("size = -7", true),
        ("size >= -6.5", false),
        ("size < 0x10", true),
        ("big = 18446744073709551615", true),
        ("big > 18446744073709551614", true),
        ("at.y = 25e-1", true),
        ("at.y <= .5", false),
        ("ok = TRUE", true),
        ("ok = 0", false),
        ("letter = 'q'", true),
        ("letter < 'r'", true),
        ("level = 'High'", true),
        ("level != 'Low'", true),
        ("level > 4", true),
        ("row[1] = 2", true),
        ("row[2] > row[1]", true),
        ("at.tags[1] LIKE 'it_s'", true),
        ("at.tags[7] = 'a'", false),
        ("maybe = 0", false),
        ("maybe <> 0", false),
        ("NOT maybe = 0", true),
    ] {
        check(expression, expect);
    }
}

#[test]
fn and_binds_more_strongly_than_or_and_not_most() {
    check("ok = TRUE OR size = 0 AND size = 1", true);
    check("(ok = TRUE OR size = 0) AND size = 1", false);
    check("NOT ok = TRUE OR size = -7", true);
    check("not (not (ok = false))", false);
}

#[test]
fn ranges_include_their_ends_and_patterns_fit_as_a_whole() {
    check("size BETWEEN -7 AND 0", true);
    check("size NOT BETWEEN -7 AND 0", false);
    check("size between -6 and 0 or color like '%'", true);
    for (pattern, expect) in [
        ("R%", true),
        ("%D", true),
        ("%E%", true),
        ("R_D", true),
        ("R?*", true),
        ("RE", false),
        ("%R%E%D%", true),
        ("_%_%_%_", false),
        ("", false),
        ("%X", false),
        ("%_ED", true),
        ("_%_D", true),
        ("%_%_%_%", true),
        ("%____", false),
        ("%_E%_", true),
        ("%_R%", false),
    ] {
        check(&format!("color LIKE '{pattern}'"), expect);
        check(&format!("color NOT LIKE '{pattern}'"), !expect);
    }
}

#[test]
fn parameters_are_read_with_and_without_quotes() {
    for expression in ["color = %0", "color = %1", "size = %2", "size < %3", "ok = %4"] {
        check(expression, true);
    }
    assert_eq!(judge("size = %9", &[]), Err("parameter %9 is not given at byte 6 of the filter".into()));
}

#[test]
fn the_member_decides_what_a_parameter_without_quotes_is() {
    for (expression, parameter) in [
        ("code = %0", "42"),
        ("code = %0", "'42'"),
        ("code LIKE %0", "42"),
        ("code <> %0", "TRUE"),
        ("code BETWEEN %0 AND '5'", "4"),
        ("letter <> %0", "4"),
        ("level = %0", "5"),
        ("level <> %0", "'Low'"),
        ("size < %0", "42"),
        ("ok = %0", "1"),
    ] {
        assert_eq!(judge(expression, &[parameter]), Ok(true), "{expression} with {parameter}");
    }
    let refused = judge("size = %0", &["'42'"]);
    assert_eq!(refused, Err("a number is not compared with a text at byte 0 of the filter".into()));
    assert!(judge("size LIKE %0", &["42"]).is_err() && judge("level = %0", &["true"]).is_err());
}

#[test]
fn numbers_are_compared_in_the_precision_of_the_member() {
    for (expression, expect) in [
        ("weight = 0.1", true),
        ("0.1 = weight", true),
        ("weight <> 0.1", false),
        ("weight < 0.1", false),
        ("weight BETWEEN 0.1 AND 0.1", true),
        ("weight < 0.10001", true),
        ("weight < 1e300", true),
        ("weight > -1e300", true),
        ("weight < 1", true),
        ("weight < at.y", true),
        ("at.y > weight", true),
        ("at.y = 2.5", true),
        ("at.y = 2.50000001", false),
    ] {
        check(expression, expect);
    }
    let filter = Filter::parse("weight = 16777217", &[""; 0]).expect("an expression");
    assert!(filter.accepts(&Sample { weight: 16_777_216.0, ..sample() }), "as near as the member can be");
    let filter = Filter::parse("weight = at.y", &[""; 0]).expect("an expression");
    let beside = |y: f64| Sample { at: Inner { y, ..sample().at }, ..sample() };
    assert!(filter.accepts(&beside(f64::from(0.1f32))) && !filter.accepts(&beside(0.1)), "members are what they are");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (expression, expect) in [
        ("", "expected the name of a member or a value at byte 0 of the filter"),
        ("size", "expected a comparison at byte 4 of the filter"),
        ("size = ", "expected the name of a member or a value at byte 7 of the filter"),
        ("size = 1 size", "expected AND, OR or the end at byte 9 of the filter"),
        ("(size = 1", "expected ) at byte 9 of the filter"),
        ("color = 'RED", "a text without its closing quote at byte 8 of the filter"),
        ("size = 1x", "this is no number at byte 7 of the filter"),
        ("size = %100", "expected %0 to %99 at byte 7 of the filter"),
        ("size # 1", "this belongs to no expression at byte 5 of the filter"),
        ("row[x] = 1", "\"row[x]\" is no name of a member at byte 0 of the filter"),
        ("height = 1", "the type has no member \"height\" that can be compared at byte 0 of the filter"),
        ("ok = TRUE AND at = 1", "the type has no member \"at\" that can be compared at byte 14 of the filter"),
        ("row[3] = 1", "the type has no member \"row[3]\" that can be compared at byte 0 of the filter"),
        ("size = 'x'", "a number is not compared with a text at byte 0 of the filter"),
        ("level = 'Middle'", "the enum has no literal \"Middle\", only Low, High at byte 0 of the filter"),
        ("level > 'Low'", "literals are equal or not; compare their numbers for an order at byte 0 of the filter"),
        ("1 = 1", "one side is a member of the type at byte 0 of the filter"),
        ("size LIKE '1'", "LIKE compares texts only at byte 0 of the filter"),
    ] {
        assert_eq!(judge(expression, &[]), Err(expect.into()), "{expression}");
    }
}

#[test]
fn no_expression_exhausts_the_stack_or_the_clock() {
    let deep = "(".repeat(5_000);
    assert!(judge(&deep, &[]).is_err_and(|error| error.contains("more than 64 conditions")));
    assert!(judge(&"NOT ".repeat(2_000), &[]).is_err());
    assert!(judge(&" ".repeat(EXPRESSION_MAX_BYTES + 1), &[]).is_err());
    let long = Filter::parse("color LIKE '%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%ab'", &[""; 0]).expect("an expression");
    let repeated = Sample { color: "a".repeat(20_000), ..sample() };
    assert!(!long.accepts(&repeated));
}

#[test]
fn a_parameter_counts_as_often_as_it_is_used() {
    let uses = |count: usize| "s LIKE %0 OR ".repeat(count) + "s = 'x'";
    let long = "a".repeat(8_000);
    let error = Filter::parse(&uses(600), &[&long]).expect_err("millions of bytes");
    assert!(error.cause.contains("as often as it is used") && error.offset.is_some(), "{error}");
    assert!(Filter::parse(&uses(20), &[&long]).is_ok() && Filter::parse(&uses(600), &["'a%'"]).is_ok());
}

#[test]
fn a_pattern_takes_no_more_steps_than_it_is_given() {
    let text = Sample { color: "a".repeat(8_000), ..sample() };
    let filter = |expression: &str, pattern: &str| Filter::parse(expression, &[pattern]).expect("an expression");
    let singles = "_".repeat(7_999);
    for (last, expect) in [('Q', false), ('a', true)] {
        let open = filter("color LIKE %0", &format!("%{singles}{last}"));
        assert_eq!(open.accepts_within(&text, &mut 8_100), Some(expect), "each character once");
    }
    let repeated = format!("%{}b", "a".repeat(400));
    for expression in ["color LIKE %0", "color NOT LIKE %0", "ok = 0 OR color LIKE %0", "ok = 1 AND color LIKE %0"] {
        let mut steps = 1 << 20;
        assert_eq!(filter(expression, &repeated).accepts_within(&text, &mut steps), None, "{expression}");
        assert_eq!(steps, 0, "{expression}");
    }
    let decided = filter("size = -7 OR color LIKE %0", &repeated);
    assert_eq!(decided.accepts_within(&text, &mut 1), Some(true));
    assert!(!filter("color LIKE %0", &repeated).accepts(&text), "of one's own filter everything is known");
}

#[test]
fn a_filter_that_would_be_announced_as_another_one_is_refused() {
    for (expression, parameter) in [("color <> %0", "RED\0B"), ("color <> 'RED\0B' OR size = %0", "1")] {
        let judged = judge(expression, &[parameter]);
        assert!(judged.is_err_and(|error| error.contains("NUL")), "{expression:?} with {parameter:?}");
    }
    let long = "x".repeat(EXPRESSION_MAX_BYTES);
    assert_eq!(judge("color = %0", &[long.as_str(); 7]), Ok(false));
    assert!(judge("color = %0", &[long.as_str(); 8]).is_err_and(|error| error.contains("together")));
}
