//! `--field` and `--filter`: ways into a sample, and conditions on it.

use std::borrow::Cow;
use std::fmt;

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
        let comparisons = text.split("&&").map(|part| {
            let found = OPERATORS.iter().filter_map(|operator| part.find(operator).map(|at| (at, *operator)));
            // Of those at one place, the longest comes first.
            let (at, operator) = found.min_by_key(|(at, _)| *at).ok_or_else(|| format!("{part:?} compares nothing"))?;
            let (path, value) = (part[..at].trim(), part[at + operator.len()..].trim());
            Ok(Comparison { path: path.parse()?, operator, value: literal(value)? })
        });
        comparisons.collect::<Result<_, String>>().map(SampleCondition)
    }
}

fn literal(text: &str) -> Result<Document, String> {
    for quote in ['\'', '"'] {
        if let Some(inside) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return Ok(Document::Text(inside.to_owned()));
        }
    }
    match text {
        "" => Err("a comparison has nothing behind its operator".to_owned()),
        "true" => Ok(Document::Boolean(true)),
        "false" => Ok(Document::Boolean(false)),
        _ => {
            let whole = text.parse().ok().map(Document::Integer);
            // A literal of an enumeration needs no quotes.
            let real = || text.parse().ok().map(Document::Real);
            Ok(whole.or_else(real).unwrap_or_else(|| Document::Text(text.to_owned())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Document {
        let json = br#"{"x":4,"name":"RED","on":true,"pose":{"at":[1.5,{"y":-2}]},"data":"0x0102"}"#;
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
    fn what_is_no_filter_or_path_is_said() {
        for (text, part) in [
            ("x", "compares nothing"),
            ("x >", "nothing behind"),
            ("a..b > 1", "dot without"),
            ("a[b] > 1", "without a number"),
        ] {
            let error = text.parse::<SampleCondition>().expect_err("an error");
            assert!(error.contains(part), "{error}");
        }
    }
}
