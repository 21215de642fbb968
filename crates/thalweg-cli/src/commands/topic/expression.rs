//! `--field` and `--filter`: ways into a sample, and conditions on it.

use std::borrow::Cow;
use std::fmt;

use thalweg::Type;
use thalweg_lab::nearest::nearest;
use thalweg_types::codec::DISCRIMINATOR;
use thalweg_types::document::Document;

/// The way to a value: `pose.position[2].x`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(usize),
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            match step {
                Step::Member(name) if place == 0 => f.write_str(name)?,
                Step::Member(name) => write!(f, ".{name}")?,
                Step::Element(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl FieldPath {
    /// The way to a member of the value there.
    pub fn member(&self, name: String) -> FieldPath {
        let steps = self.0.iter().cloned().chain([Step::Member(name)]);
        FieldPath(steps.collect())
    }

    /// Refuses a way that leads nowhere in any sample of a type.
    ///
    /// # Errors
    /// The first step that leads nowhere, and those that could be meant.
    pub fn check(&self, of: &Type) -> Result<(), String> {
        let mut whole = of.clone();
        for step in &self.0 {
            let of = whole.followed().into_owned();
            whole = part_of(&of, step).map_err(|problem| format!("{self}: {problem}"))?;
        }
        Ok(())
    }

    /// The value there, if there is one.
    pub fn find<'a>(&self, sample: &'a Document) -> Option<Cow<'a, Document>> {
        let mut value = Cow::Borrowed(sample);
        for step in &self.0 {
            // An element of a row of numbers is made for this, and has no parts.
            let Cow::Borrowed(whole) = value else { return None };
            value = match step {
                Step::Member(name) => Cow::Borrowed(whole.member(name)?),
                Step::Element(index) => whole.item(*index)?,
            };
        }
        Some(value)
    }
}

/// The type of the part of a value to which a step leads.
fn part_of(of: &Type, step: &Step) -> Result<Type, String> {
    match (of, step) {
        (Type::Structure(of), Step::Member(name)) => {
            let member = of.members.iter().find(|member| *member.name == **name);
            let known = of.members.iter().map(|member| &*member.name);
            member.map(|member| member.member_type.clone()).ok_or_else(|| unknown(name, known))
        }
        (Type::Union(of), Step::Member(name)) if *name == DISCRIMINATOR => Ok(of.discriminator.clone()),
        (Type::Union(of), Step::Member(name)) => {
            let case = of.cases.iter().find(|case| case.name == *name);
            let known = of.cases.iter().map(|case| case.name.as_str());
            case.and_then(|case| case.case_type.clone()).ok_or_else(|| unknown(name, known))
        }
        (Type::Bitset(of), Step::Member(name)) => {
            let field = of.fields.iter().find(|field| field.name == *name);
            let known = of.fields.iter().map(|field| field.name.as_str());
            field.map(|field| Type::Primitive(field.holder)).ok_or_else(|| unknown(name, known))
        }
        (Type::Map { element, .. }, Step::Member(_)) => Ok((**element).clone()),
        (Type::Sequence { element, bound }, Step::Element(index)) if bound.is_none_or(|bound| *index < bound) => {
            Ok((**element).clone())
        }
        (Type::Array { element, count }, Step::Element(index)) if index < count => Ok((**element).clone()),
        // The names of the flags that are set.
        (Type::Bitmask(of), Step::Element(index)) if *index < of.flags.len() => Ok(Type::String { bound: None }),
        (Type::Sequence { .. } | Type::Array { .. } | Type::Bitmask(_), Step::Element(index)) => {
            Err(format!("there is never an element {index}"))
        }
        (_, Step::Member(name)) => Err(format!("{name:?} would be a member of a value that has none")),
        (_, Step::Element(index)) => Err(format!("{index} would be an element of a value that has none")),
    }
}

/// There is no member of this name; tells the one that may be meant.
fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let meant = nearest(name, known.clone()).map(|meant| format!("did you mean {meant:?}? ")).unwrap_or_default();
    let more = if known.clone().nth(NAMED_MAX).is_some() { ", …" } else { "" };
    let names: Vec<&str> = known.take(NAMED_MAX).collect();
    format!("there is no member {name:?}; {meant}members: {}{more}", names.join(", "))
}

impl std::str::FromStr for FieldPath {
    type Err = String;

    fn from_str(text: &str) -> Result<FieldPath, String> {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (name, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
            if name.is_empty() {
                return Err(format!("{text:?} has a dot without a member"));
            }
            steps.push(Step::Member(name.to_owned()));
            for index in indices.split_inclusive(']') {
                let digits = index.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                let index = digits.and_then(|digits| digits.parse().ok());
                steps.push(Step::Element(index.ok_or_else(|| format!("{text:?} has brackets without a number"))?));
            }
        }
        Ok(FieldPath(steps))
    }
}

/// Comparisons that all hold: `x > 3 && name == 'RED'`.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleCondition(Vec<Comparison>);

#[derive(Clone, Debug, PartialEq)]
struct Comparison {
    path: FieldPath,
    operator: &'static str,
    value: Document,
}

/// The longer ones first: `<=` begins like `<`.
const OPERATORS: [&str; 7] = ["==", "!=", "<=", ">=", "<", ">", "="];

impl SampleCondition {
    /// Refuses a condition on what no sample of a type has.
    ///
    /// # Errors
    /// As [`FieldPath::check`].
    pub fn check(&self, of: &Type) -> Result<(), String> {
        self.0.iter().try_for_each(|comparison| comparison.path.check(of))
    }

    /// Whether a sample fulfils all comparisons; one without the member does not.
    pub fn admits(&self, sample: &Document) -> bool {
        self.0.iter().all(|comparison| comparison.holds(sample))
    }
}

impl Comparison {
    fn holds(&self, sample: &Document) -> bool {
        use std::cmp::Ordering;
        let Some(found) = self.path.find(sample) else { return false };
        let order = match (&*found, &self.value) {
            (Document::Text(one), Document::Text(other)) => Some(one.cmp(other)),
            (Document::Boolean(one), Document::Boolean(other)) => Some(one.cmp(other)),
            (Document::Integer(one), Document::Integer(other)) => Some(one.cmp(other)),
            (one, other) => number(one).zip(number(other)).and_then(|(one, other)| one.partial_cmp(&other)),
        };
        match (self.operator, order) {
            ("!=", order) => order != Some(Ordering::Equal),
            (_, None) => false,
            ("<", Some(order)) => order.is_lt(),
            ("<=", Some(order)) => order.is_le(),
            (">", Some(order)) => order.is_gt(),
            (">=", Some(order)) => order.is_ge(),
            (_, Some(order)) => order.is_eq(),
        }
    }
}

fn number(document: &Document) -> Option<f64> {
    match document {
        Document::Integer(number) => Some(*number as f64),
        Document::Real(number) => Some(*number),
        _ => None,
    }
}

impl std::str::FromStr for SampleCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<SampleCondition, String> {
        let comparisons = conjuncts(text)?.into_iter().map(|part| {
            let found = OPERATORS.iter().filter_map(|operator| part.find(operator).map(|at| (at, *operator)));
            // Of those at one place, the longest comes first.
            let (at, operator) = found.min_by_key(|(at, _)| *at).ok_or_else(|| format!("{part:?} compares nothing"))?;
            let (path, value) = (part[..at].trim(), part[at + operator.len()..].trim());
            Ok(Comparison { path: path.parse()?, operator, value: literal(value)? })
        });
        comparisons.collect::<Result<_, String>>().map(SampleCondition)
    }
}

/// The parts between `&&`, which is text like any other in quotes.
fn conjuncts(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut begin, mut open) = (Vec::new(), 0, None);
    for (at, letter) in text.char_indices() {
        match open {
            Some(quote) if letter == quote => open = None,
            Some(_) => {}
            None if letter == '\'' || letter == '"' => open = Some(letter),
            None if at >= begin && text[at..].starts_with("&&") => {
                parts.push(&text[begin..at]);
                begin = at + 2;
            }
            None => {}
        }
    }
    if let Some(quote) = open {
        return Err(format!("{text:?} has a {quote} without its end; a text that has one stands in the other quotes"));
    }
    parts.push(&text[begin..]);
    Ok(parts)
}

fn literal(text: &str) -> Result<Document, String> {
    let other = || format!("{text:?} is no value: only && joins comparisons; texts with other letters stand in quotes");
    for quote in ['\'', '"'] {
        if let Some(inside) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            // Its end comes before the last quote, and something else follows.
            return if inside.contains(quote) { Err(other()) } else { Ok(Document::Text(inside.to_owned())) };
        }
    }
    match text {
        "" => Err("a comparison has nothing behind its operator".to_owned()),
        "true" => Ok(Document::Boolean(true)),
        "false" => Ok(Document::Boolean(false)),
        _ => {
            let whole = text.parse().ok().map(Document::Integer);
            // A literal of an enumeration needs no quotes, and may be NAN or INF.
            let may_be_real = text.starts_with(|letter: char| letter.is_ascii_digit() || "+-.".contains(letter));
            let real = || text.parse().ok().filter(|_| may_be_real).map(Document::Real);
            let is_plain = text.chars().all(|letter| letter.is_alphanumeric() || "_:/-.+~".contains(letter));
            let plain = || is_plain.then(|| Document::Text(text.to_owned()));
            whole.or_else(real).or_else(plain).ok_or_else(other)
        }
    }
}

/// Names in an error, chosen by us: what a person reads.
const NAMED_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Document {
        let json = br#"{"x":4,"name":"RED","note":"a && x > 3, it's b","on":true,"pose":{"at":[1.5,{"y":-2}]},"data":"0x0102"}"#;
        Document::from_json(json).expect("JSON")
    }

    #[track_caller]
    fn admits(filter: &str, expect: bool) {
        let filter: SampleCondition = filter.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(filter.admits(&sample()), expect, "{filter:?}");
    }

    #[test]
    fn filters_compare_what_stands_at_a_path() {
        admits("x > 3", true);
        admits("x>=4 && x<=4 && x != 5", true);
        admits("x < 4", false);
        admits("name == 'RED' && on == true", true);
        admits("name = RED", true);
        admits("pose.at[0] > 1", true);
        admits("pose.at[1].y == -2", true);
        admits("pose.at[2] > 0", false);
        admits("missing == 1", false);
        admits("name > 3", false);
    }

    #[test]
    fn quotes_hold_what_is_an_operator_elsewhere() {
        admits("x > 3 && note == \"a && x > 3, it's b\"", true);
        admits("note != 'a && b' && x == 4", true);
    }

    #[test]
    fn texts_that_cannot_be_mistaken_need_no_quotes() {
        for (text, value) in [
            ("base_link", Document::Text("base_link".to_owned())),
            ("/camera/image-raw.2", Document::Text("/camera/image-raw.2".to_owned())),
            ("NAN", Document::Text("NAN".to_owned())),
            ("INF", Document::Text("INF".to_owned())),
            ("-2", Document::Integer(-2)),
            (".5", Document::Real(0.5)),
            ("+1e3", Document::Real(1000.0)),
        ] {
            assert_eq!(literal(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn a_way_that_no_sample_of_the_type_has_is_refused() {
        let text = "struct P { double at[2]; }; union U switch (long) { case 1: P p; default: string s; };
            bitset B { bitfield<3> a; }; bitmask M { F }; struct N;
            struct N { sequence<N> children; U u; B b; M m; map<string, P> by_name; @optional P maybe; sequence<octet, 4> data; };";
        let types = thalweg_types::idl::parse(text).expect("IDL");
        let of = types.find("N").expect("the type");
        let check = |path: &str| path.parse::<FieldPath>().expect("a path").check(of);
        for path in [
            "u.p.at[1]",
            "u.$discriminator",
            "children[3].children[0].b.a",
            "by_name.any.at[0]",
            "maybe.at[1]",
            "data[3]",
            "m[0]",
        ] {
            assert_eq!(check(path), Ok(()), "{path}");
        }
        for (path, part) in [
            ("chidren", "did you mean \"children\"? members: children, u, b, m, by_name, maybe, data"),
            ("children[0].u.q", "no member \"q\""),
            ("u.p.at[2]", "never an element 2"),
            ("data[4]", "never an element 4"),
            ("b.z", "no member \"z\""),
            ("u.s.x", "\"x\" would be a member"),
            ("u[0]", "0 would be an element"),
        ] {
            let problem = check(path).expect_err(path);
            assert!(problem.starts_with(path) && problem.contains(part), "{problem}");
        }
        let filter: SampleCondition = "b.a > 1 && chidren[0].b.a > 2".parse().expect("a condition");
        assert!(filter.check(of).is_err_and(|problem| problem.starts_with("chidren[0].b.a")));
    }

    #[test]
    fn what_is_no_filter_or_path_is_said() {
        for (text, part) in [
            ("x", "compares nothing"),
            ("x >", "nothing behind"),
            ("a..b > 1", "dot without"),
            ("a[b] > 1", "without a number"),
            ("name == 'RED && x > 3", "without its end"),
            ("x > 3 || y > 3", "only && joins"),
            ("x != 3 || y != 3", "only && joins"),
            ("x>3||y>3", "only && joins"),
            ("x > 3 and y > 3", "only && joins"),
            ("name == 'RED' || name == 'BLUE'", "only && joins"),
            ("name == 'RED'x", "only && joins"),
            ("x =< 3", "only && joins"),
            ("(x > 3)", "only && joins"),
        ] {
            let error = text.parse::<SampleCondition>().expect_err("an error");
            assert!(error.contains(part), "{error}");
        }
    }
}
