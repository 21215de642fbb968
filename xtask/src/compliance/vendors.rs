//! The shapes programs of other vendors, and the page of what they and ours come to.

use std::ffi::OsString;
use std::fmt::Write as _;

use super::cases::{CASES, Case};
use super::ends::ShapesProgram;
use super::{FIRST_DOMAIN, Verdict, report, run_all, run_case};
use crate::netns::{self, Host};
use crate::workspace::root;
use crate::{Outcome, peers};

/// The page that is made.
const PAGE: &str = "docs/interoperability.md";

/// A vendor whose shapes program lies below `peers/`.
struct Vendor {
    /// Its name on the command line.
    name: &'static str,
    /// What the program is made with.
    title: &'static str,
    /// Builds the program; returns the words that start it.
    prepare: fn() -> Outcome<Vec<OsString>>,
    /// What is otherwise than expected, and why.
    deviations: &'static [Deviation],
}

/// Which of the two publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Ours.
    To,
    /// The vendor's.
    From,
}

/// A case that fails for a reason that is known.
struct Deviation {
    case: &'static str,
    way: Way,
    /// A part of what is said of the failure: any other one is none that is known.
    comes_to: &'static str,
    why: &'static str,
}

const VENDORS: &[Vendor] = &[
    Vendor { name: "cyclone", title: "Cyclone DDS 11.0.1", prepare: cyclone, deviations: CYCLONE },
    Vendor { name: "fastdds", title: "Fast DDS 3.1.2", prepare: fastdds, deviations: FASTDDS },
    Vendor { name: "rustdds", title: "RustDDS 0.15.1", prepare: rustdds, deviations: RUSTDDS },
    Vendor { name: "dust", title: "Dust DDS 0.16.0", prepare: dust, deviations: DUST },
];

const CYCLONE: &[Deviation] = &[
    CYCLONE_REPRESENTATION,
    Deviation { case: "representation 2 to 1", ..CYCLONE_REPRESENTATION },
    Deviation { way: Way::From, comes_to: FROM_CYCLONE, ..CYCLONE_REPRESENTATION },
    Deviation { case: "representation 2 to 1", way: Way::From, comes_to: FROM_CYCLONE, ..CYCLONE_REPRESENTATION },
];

const CYCLONE_REPRESENTATION: Deviation = Deviation {
    case: "representation 1 to 2",
    way: Way::To,
    comes_to: "the policies [Some(23), Some(25)] were named",
    why: "Both ends refuse the other; Cyclone DDS tells its user of policy 25, where DATA_REPRESENTATION has 23 \
          (DDS-XTypes 1.3 §7.6.3.1).",
};
const FROM_CYCLONE: &str = "the policies [Some(25), Some(23)] were named";

const FASTDDS: &[Deviation] = &[Deviation {
    case: "lifespan",
    way: Way::To,
    comes_to: "gaps between them does not hold",
    why: "A reader of Fast DDS applies the LIFESPAN of its own QoS, where DDS 1.4 §2.2.3.16 has that of the writer.",
}];

const RUSTDDS: &[Deviation] = &[
    Deviation {
        case: "the strongest owns",
        way: Way::To,
        comes_to: "the stronger alone, once it is there does not hold",
        why: "RustDDS matches EXCLUSIVE ownership and gives out what all writers wrote, as its documentation says.",
    },
    Deviation {
        case: "the strongest owns",
        way: Way::From,
        comes_to: "came to Incompatible and Alone",
        why: RUSTDDS_OWNERSHIP,
    },
    Deviation {
        case: "ownership shared to exclusive",
        way: Way::From,
        comes_to: "came to Fine and Incompatible",
        why: RUSTDDS_OWNERSHIP,
    },
    Deviation {
        case: "deadline missed",
        way: Way::From,
        comes_to: "came to Fine and DeadlineMissed",
        why: "A RustDDS writer does not tell of deadlines that it missed; our reader does.",
    },
    Deviation {
        case: "lifespan",
        way: Way::To,
        comes_to: "gaps between them does not hold",
        why: "A RustDDS reader gives out samples that have expired.",
    },
    Deviation {
        case: "unregistered",
        way: Way::To,
        comes_to: "came to Fine and Fine",
        why: "A RustDDS reader does not tell of instances without writers.",
    },
];

const DUST: &[Deviation] = &[];

const RUSTDDS_OWNERSHIP: &str = "RustDDS takes a reader for SHARED that does not announce OWNERSHIP_STRENGTH, a policy of \
                                 writers (DDS 1.4 §2.2.3.10).";

/// What the page says of a vendor's program beyond the cases.
const REMARKS: &[&str] = &[
    "The program on Fast DDS makes key hashes of its dynamic type MD5 digests, as generated types have them (RTPS 2.5 §9.6.4.8): else Fast \
     DDS takes a short key itself as its hash and sends nothing else of an instance that ends.",
];

fn cyclone() -> Outcome<Vec<OsString>> {
    let python = peers::cyclone_python()?;
    Ok(vec![python.into(), root().join("peers/cyclone-py/shapes.py").into()])
}

fn fastdds() -> Outcome<Vec<OsString>> {
    Ok(vec![peers::FASTDDS.build()?.into(), "shapes".into()])
}

fn rustdds() -> Outcome<Vec<OsString>> {
    Ok(vec![peers::RUSTDDS.build()?.into(), "shapes".into()])
}

fn dust() -> Outcome<Vec<OsString>> {
    Ok(vec![peers::DUST.build()?.into(), "shapes".into()])
}

/// What all cases came to with one vendor.
struct Results<'a> {
    vendor: &'a Vendor,
    to: Vec<Verdict>,
    from: Vec<Verdict>,
}

/// Runs the cases with the named vendors, both ways. With all vendors, writes the page or, with `check`, compares it with the one that is
/// there. Returns how many passed.
///
/// # Errors
/// A program is not to be had, a case fails without a known reason or no longer for it, or the page is another one.
pub fn run(own: Vec<OsString>, names: &[&str], check: bool) -> Outcome<usize> {
    let known = || VENDORS.iter().map(|vendor| vendor.name).collect::<Vec<_>>().join(", ");
    if let Some(unknown) = names.iter().find(|name| VENDORS.iter().all(|vendor| vendor.name != **name)) {
        return Err(format!("no vendor is called {unknown}; there are {}", known()));
    }
    netns::available()?;
    let host = Host::new("shapes")?;
    let own = ShapesProgram::on(&host, own).ours();
    let mut all = Vec::new();
    for vendor in VENDORS.iter().filter(|vendor| names.is_empty() || names.contains(&vendor.name)) {
        let other = ShapesProgram::on(&host, (vendor.prepare)()?);
        println!("\n=== Thalweg to {} ===", vendor.title);
        let mut to = run_all(&own, &other);
        try_again(vendor, Way::To, &mut to, (&own, &other));
        report(&to);
        println!("\n=== {} to Thalweg ===", vendor.title);
        let mut from = run_all(&other, &own);
        try_again(vendor, Way::From, &mut from, (&other, &own));
        report(&from);
        all.push(Results { vendor, to, from });
    }
    let wrong: Vec<String> = all.iter().flat_map(Results::surprises).collect();
    if names.is_empty() && (wrong.is_empty() || !check) {
        publish(&page(&all), check)?;
    }
    let passed = all.iter().flat_map(|one| one.to.iter().chain(&one.from)).filter(|one| **one == Verdict::Passed);
    if wrong.is_empty() { Ok(passed.count()) } else { Err(wrong.join("\n")) }
}

/// Runs each case that came to something that is not known once more, alone: programs beside others may be late.
fn try_again(vendor: &Vendor, way: Way, verdicts: &mut [Verdict], programs: (&ShapesProgram<'_>, &ShapesProgram<'_>)) {
    for (case, verdict) in CASES.iter().zip(verdicts) {
        if vendor.surprise(case, way, verdict).is_some() {
            println!("again, alone: {}: {verdict:?}", case.name);
            *verdict = run_case(case, FIRST_DOMAIN, programs.0, programs.1).unwrap_or_else(Verdict::Failed);
        }
    }
}

fn publish(page: &str, check: bool) -> Outcome {
    let path = root().join(PAGE);
    if !check {
        return std::fs::write(&path, page).map_err(|error| format!("{PAGE}: {error}"));
    }
    let there = std::fs::read_to_string(&path).map_err(|error| format!("{PAGE}: {error}"))?;
    if there == page {
        return Ok(());
    }
    Err(format!("{PAGE} is not what the cases came to; run `cargo xtask compliance vendors`"))
}

impl Way {
    /// Its column of the page.
    fn title(self, vendor: &Vendor) -> String {
        let word = if self == Way::To { "to" } else { "from" };
        format!("{word} {}", vendor.title)
    }
}

impl Results<'_> {
    fn verdicts(&self) -> [(Way, &[Verdict]); 2] {
        [(Way::To, &self.to), (Way::From, &self.from)]
    }

    /// Cases that fail for no known reason, and those that should fail.
    fn surprises(&self) -> Vec<String> {
        let each = |(way, verdicts): (Way, &[Verdict])| {
            let all = CASES.iter().zip(verdicts);
            all.filter_map(|(case, verdict)| self.vendor.surprise(case, way, verdict)).collect::<Vec<_>>()
        };
        self.verdicts().into_iter().flat_map(each).collect()
    }
}

impl Vendor {
    fn deviation(&self, case: &Case, way: Way) -> Option<&Deviation> {
        self.deviations.iter().find(|known| known.case == case.name && known.way == way)
    }

    /// The cell of the page.
    fn result(&self, case: &Case, way: Way, verdict: &Verdict) -> String {
        match (verdict, self.deviation(case, way)) {
            (Verdict::Passed, _) => "yes".to_owned(),
            (Verdict::NotOffered, _) => "–".to_owned(),
            (Verdict::Failed(_), None) => "**no**".to_owned(),
            (Verdict::Failed(_), Some(known)) => {
                let number = notes().iter().position(|why| *why == known.why).map_or(0, |place| place + 1);
                format!("no ({number})")
            }
        }
    }

    /// What to say of a case that came to something that is not known.
    fn surprise(&self, case: &Case, way: Way, verdict: &Verdict) -> Option<String> {
        let place = format!("{}, {}", case.name, way.title(self));
        match (verdict, self.deviation(case, way)) {
            (Verdict::Failed(why), Some(known)) if why.contains(known.comes_to) => None,
            (Verdict::Failed(why), _) => Some(format!("{place}: {why}")),
            (Verdict::Passed | Verdict::NotOffered, Some(known)) => {
                Some(format!("{place} does not fail; it should: {}", known.why))
            }
            (Verdict::Passed | Verdict::NotOffered, None) => None,
        }
    }
}

/// The page of what the vendors' programs came to.
fn page(all: &[Results<'_>]) -> String {
    let mut page = String::from(
        "# Interoperability\n\nMade by `cargo xtask compliance vendors`; do not edit. Each [case](compliance.md#cases-of-thalweg-shapes-with-itself) \
         has `thalweg shapes` on one side and on the other a program with the same options on another vendor's middleware \
         ([peers](../peers/README.md)), which subscribes to what Thalweg publishes (to) or publishes to it (from). Where a policy refuses the pair, “yes” \
         means that both were told of it; “–” is what that program does not have.\n\n",
    );
    let title = |(vendor, way): (&Vendor, Way)| format!(" {} |", way.title(vendor));
    let heads: String = all.iter().flat_map(|one| [Way::To, Way::From].map(|way| title((one.vendor, way)))).collect();
    _ = writeln!(page, "| case | clause |{heads}\n|---|---|{}", "---|---|".repeat(all.len()));
    for (at, case) in CASES.iter().enumerate() {
        _ = write!(page, "| {} | {} |", case.name, case.clause);
        for results in all {
            for (way, verdicts) in results.verdicts() {
                _ = write!(page, " {} |", results.vendor.result(case, way, &verdicts[at]));
            }
        }
        page.push('\n');
    }
    page.push_str("\n## What is otherwise\n\n");
    notes().iter().enumerate().for_each(|(at, why)| _ = writeln!(page, "{}. {why}", at + 1));
    page.push_str("\n## The programs\n\n");
    REMARKS.iter().for_each(|remark| _ = writeln!(page, "- {remark}"));
    page
}

/// Why something is otherwise, each reason once, in the order of the vendors.
fn notes() -> Vec<&'static str> {
    let mut notes: Vec<&str> = Vec::new();
    for known in VENDORS.iter().flat_map(|vendor| vendor.deviations) {
        if !notes.contains(&known.why) {
            notes.push(known.why);
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_of_cases_that_exist() {
        for known in VENDORS.iter().flat_map(|vendor| vendor.deviations) {
            assert!(CASES.iter().any(|case| case.name == known.case), "{}", known.case);
        }
    }

    #[test]
    fn the_page_has_a_row_of_each_case() {
        let text = std::fs::read_to_string(root().join(PAGE)).expect("the page is there");
        let rows: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).collect();
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(rows[1..], names, "run `cargo xtask compliance vendors`");
    }

    #[test]
    fn the_page_numbers_what_is_otherwise() {
        let (vendor, known) = (&VENDORS[0], &VENDORS[0].deviations[0]);
        let fails = |case: &Case| case.name == known.case;
        let verdict = |case: &Case| if fails(case) { Verdict::Failed(String::new()) } else { Verdict::Passed };
        let offered = CASES.iter().map(|_| Verdict::NotOffered).collect();
        let page = page(&[Results { vendor, to: CASES.iter().map(verdict).collect(), from: offered }]);
        assert!(page.contains("| no (1) | – |") && page.contains(&format!("\n1. {}\n", known.why)), "{page}");
    }

    #[test]
    fn what_should_fail_and_does_not_is_told_as_well_as_what_fails() {
        const KNOWN: &[Deviation] =
            &[Deviation { case: CASES[0].name, way: Way::To, comes_to: "no match", why: "its fault" }];
        let vendor = Vendor { name: "v", title: "V 1", prepare: || Ok(Vec::new()), deviations: KNOWN };
        let failed = || Verdict::Failed("no match".to_owned());
        let results = |first: Verdict, second: Verdict| {
            let rest = || CASES[1..].iter().map(|_| Verdict::NotOffered);
            let (to, from) = ([first].into_iter().chain(rest()), [second].into_iter().chain(rest()));
            Results { vendor: &vendor, to: to.collect(), from: from.collect() }
        };
        assert_eq!(results(failed(), Verdict::Passed).surprises(), [""; 0]);
        assert_eq!(results(Verdict::Passed, failed()).surprises().len(), 2);
        let other = Verdict::Failed("it panicked".to_owned());
        assert_eq!(results(other, Verdict::Passed).surprises().len(), 1, "that is no fault that is known");
    }
}
