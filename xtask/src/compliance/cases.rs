//! What a publisher and a subscriber of `thalweg shapes` have to do with each pair of options. Options and words are those of the OMG's
//! interoperability suite; the table is Thalweg's own.

use super::ends::{End, PrintedSample};

/// One run of a subscriber and its publishers.
pub struct Case {
    /// Its name in the table.
    pub name: &'static str,
    /// What it shows, and the clause of DDS 1.4.
    pub clause: &'static str,
    /// The options of each publisher.
    pub publishers: &'static [&'static str],
    /// The options of the subscriber.
    pub subscriber: &'static str,
    /// What the first publisher and the subscriber have to come to.
    pub expect: (End, End),
    /// What has to hold of the samples that the subscriber printed, where they are looked at.
    pub rule: Option<SampleRule>,
}

impl Case {
    /// The number of the policy by which its ends do not fit, if they do not (DDS 1.4, IDL PSM; XTypes 1.3 §7.6.3.1.1).
    pub fn refused_policy(&self) -> Option<u32> {
        let all = [
            ("DURABILITY ", 2),
            ("PRESENTATION ", 3),
            ("DEADLINE ", 4),
            ("OWNERSHIP ", 6),
            ("RELIABILITY ", 11),
            ("DATA_REPRESENTATION ", 23),
        ];
        let is_refused = self.expect == REFUSE;
        all.into_iter().find(|(name, _)| is_refused && self.clause.starts_with(name)).map(|(_, number)| number)
    }
}

/// A rule of samples.
pub struct SampleRule {
    /// How many are looked at.
    pub samples: usize,
    /// The rule in words.
    pub words: &'static str,
    /// Whether it holds.
    pub holds: fn(&[PrintedSample]) -> bool,
}

const MATCH: (End, End) = (End::Fine, End::Fine);
const REFUSE: (End, End) = (End::Incompatible, End::Incompatible);
const APART: (End, End) = (End::Alone, End::Alone);

const fn case(
    name: &'static str,
    clause: &'static str,
    publisher: &'static [&'static str],
    subscriber: &'static str,
    expect: (End, End),
) -> Case {
    Case { name, clause, publishers: publisher, subscriber, expect, rule: None }
}

const fn with_rule(case: Case, rule: SampleRule) -> Case {
    Case { rule: Some(rule), ..case }
}

const EVERY_ONE: SampleRule = SampleRule { samples: 60, words: "every sample, once and in order", holds: each_follows };
const ASCENDING: SampleRule = SampleRule { samples: 40, words: "no sample twice or out of order", holds: ascends };
const FROM_THE_FIRST: SampleRule =
    SampleRule { samples: 20, words: "from the first sample on", holds: |all| all[0].size == 1 && each_follows(all) };
const NOT_THE_FIRST: SampleRule =
    SampleRule { samples: 5, words: "nothing that was written before", holds: |all| all[0].size > 3 };
const ONE_COLOR: SampleRule =
    SampleRule { samples: 20, words: "RED1 alone", holds: |all| all.iter().all(|one| one.color == "RED1") };
const SMALL: SampleRule =
    SampleRule { samples: 20, words: "sizes up to 10", holds: |all| all.iter().all(|one| one.size <= 10) };
const APART_IN_TIME: SampleRule = SampleRule {
    samples: 8,
    words: "one sample in a second of ten",
    holds: |all| steps(&all[2..]).all(|step| (9..=19).contains(&step)),
};
const GAPS: SampleRule =
    SampleRule { samples: 12, words: "runs of two or three, and gaps between them", holds: runs_and_gaps };
const STRONGEST: SampleRule =
    SampleRule { samples: 60, words: "the stronger alone, once it is there", holds: strongest_stays };
const BOTH: SampleRule =
    SampleRule { samples: 60, words: "both writers", holds: |all| sizes(all, 20) && sizes(all, 30) };
const FOUR: SampleRule = SampleRule {
    samples: 40,
    words: "four instances",
    holds: |all| ["RED", "RED1", "RED2", "RED3"].iter().all(|color| all.iter().any(|one| one.color == *color)),
};
const LARGE: SampleRule =
    SampleRule { samples: 5, words: "whole samples", holds: |all| all.iter().all(|one| one.last_octet == Some(255)) };

fn steps(all: &[PrintedSample]) -> impl Iterator<Item = i64> {
    all.windows(2).map(|two| two[1].size - two[0].size)
}

fn each_follows(all: &[PrintedSample]) -> bool {
    steps(all).all(|step| step == 1)
}

fn ascends(all: &[PrintedSample]) -> bool {
    steps(all).all(|step| step > 0)
}

fn runs_and_gaps(all: &[PrintedSample]) -> bool {
    let gaps: Vec<usize> = steps(all).enumerate().filter(|(_, step)| *step > 1).map(|(at, _)| at).collect();
    ascends(all) && gaps.len() >= 2 && gaps.windows(2).all(|two| (2..=3).contains(&(two[1] - two[0])))
}

fn strongest_stays(all: &[PrintedSample]) -> bool {
    let first = all.iter().position(|one| one.size == 30);
    first.is_some_and(|first| all[first..].iter().all(|one| one.size == 30))
}

fn sizes(all: &[PrintedSample], size: i64) -> bool {
    all.iter().any(|one| one.size == size)
}

/// All of them.
pub const CASES: &[Case] = &[
    case("representation XCDR1", "DATA_REPRESENTATION (XTypes 1.3 §7.6.3.1)", &["-x 1"], "-x 1", MATCH),
    case("representation XCDR2", "DATA_REPRESENTATION (XTypes 1.3 §7.6.3.1)", &["-x 2"], "-x 2", MATCH),
    case("representation 1 to 2", "DATA_REPRESENTATION (XTypes 1.3 §7.6.3.1)", &["-x 1"], "-x 2", REFUSE),
    case("representation 2 to 1", "DATA_REPRESENTATION (XTypes 1.3 §7.6.3.1)", &["-x 2"], "-x 1", REFUSE),
    with_rule(case("best effort", "RELIABILITY §2.2.3.14", &["-b -z 0"], "-b", MATCH), ASCENDING),
    with_rule(case("reliable to best effort", "RELIABILITY §2.2.3.14", &["-r -z 0"], "-b", MATCH), ASCENDING),
    case("best effort to reliable", "RELIABILITY §2.2.3.14", &["-b"], "-r", REFUSE),
    with_rule(
        case("reliable", "RELIABILITY §2.2.3.14, HISTORY §2.2.3.18", &["-r -k 0 -z 0"], "-r -k 0", MATCH),
        EVERY_ONE,
    ),
    with_rule(case("depth 5", "HISTORY §2.2.3.18", &["-r -k 5 -z 0 --write-period 100"], "-r -k 5", MATCH), EVERY_ONE),
    case("deadline kept", "DEADLINE §2.2.3.7", &["-f 3000"], "-f 5000", MATCH),
    case("deadline too long", "DEADLINE §2.2.3.7", &["-f 5000"], "-f 3000", REFUSE),
    case("deadline not asked for", "DEADLINE §2.2.3.7", &["-f 3000"], "-f 0", MATCH),
    case(
        "deadline missed",
        "DEADLINE §2.2.3.7",
        &["-f 300 --write-period 1000"],
        "-f 300",
        (End::DeadlineMissed, End::DeadlineMissed),
    ),
    case("ownership shared to exclusive", "OWNERSHIP §2.2.3.9", &["-s -1"], "-s 3", REFUSE),
    case("ownership exclusive to shared", "OWNERSHIP §2.2.3.9", &["-s 3"], "-s -1", REFUSE),
    with_rule(
        case("the strongest owns", "OWNERSHIP_STRENGTH §2.2.3.10", &["-s 3 -z 20", "-s 4 -z 30"], "-s 2 -k 0", MATCH),
        STRONGEST,
    ),
    with_rule(case("shared by two", "OWNERSHIP §2.2.3.9", &["-s -1 -z 20", "-s -1 -z 30"], "-s -1 -k 0", MATCH), BOTH),
    case("durability v to l", "DURABILITY §2.2.3.4", &["-D v"], "-D l", REFUSE),
    case("durability l to v", "DURABILITY §2.2.3.4", &["-D l"], "-D v", MATCH),
    case("durability l to t", "DURABILITY §2.2.3.4", &["-D l"], "-D t", REFUSE),
    case("durability t to t", "DURABILITY §2.2.3.4", &["-D t"], "-D t", MATCH),
    case("durability p to p", "DURABILITY §2.2.3.4", &["-D p"], "-D p", MATCH),
    with_rule(
        case("late, transient local", "DURABILITY §2.2.3.4", &["late -r -k 0 -D l -z 0"], "-r -k 0 -D l", MATCH),
        FROM_THE_FIRST,
    ),
    with_rule(
        case("late, volatile", "DURABILITY §2.2.3.4", &["late -r -k 0 -D v -z 0"], "-r -k 0 -D v", MATCH),
        NOT_THE_FIRST,
    ),
    case("one partition", "PARTITION §2.2.3.13", &["-p p1"], "-p p1", MATCH),
    case("a partition by pattern", "PARTITION §2.2.3.13", &["-p p1"], "-p p*", MATCH),
    case("two partitions", "PARTITION §2.2.3.13", &["-p p1"], "-p p2", APART),
    case("two topics", "§2.2.2.3", &["-t Circle"], "-t Square", APART),
    case(
        "presentation i to t",
        "PRESENTATION §2.2.3.6",
        &["--coherent --access-scope i"],
        "--coherent --access-scope t",
        REFUSE,
    ),
    case(
        "presentation t to i",
        "PRESENTATION §2.2.3.6",
        &["--coherent --access-scope t"],
        "--coherent --access-scope i",
        MATCH,
    ),
    case(
        "coherence not offered",
        "PRESENTATION §2.2.3.6",
        &["--ordered --access-scope t"],
        "--coherent --access-scope t",
        REFUSE,
    ),
    case(
        "order not offered",
        "PRESENTATION §2.2.3.6",
        &["--coherent --access-scope t"],
        "--ordered --access-scope t",
        REFUSE,
    ),
    case(
        "group, coherent",
        "PRESENTATION §2.2.3.6",
        &["--coherent --access-scope g"],
        "--coherent --access-scope g",
        MATCH,
    ),
    case(
        "group, ordered",
        "PRESENTATION §2.2.3.6",
        &["--ordered --access-scope g"],
        "--ordered --access-scope g",
        MATCH,
    ),
    with_rule(
        case("filter by color", "ContentFilteredTopic §2.2.2.3.3", &["--num-instances 2 -z 0"], "-c RED1", MATCH),
        ONE_COLOR,
    ),
    with_rule(
        case(
            "filter by size",
            "ContentFilteredTopic §2.2.2.3.3",
            &["-z 0 --size-modulo 20"],
            "--cft 'shapesize <= 10'",
            MATCH,
        ),
        SMALL,
    ),
    with_rule(
        case(
            "separation",
            "TIME_BASED_FILTER §2.2.3.12",
            &["-r -k 0 -z 0 --write-period 100"],
            "-r -k 0 --time-filter 1000",
            MATCH,
        ),
        APART_IN_TIME,
    ),
    with_rule(
        case(
            "lifespan",
            "LIFESPAN §2.2.3.16",
            &["-r -k 0 -z 0 --write-period 100 --lifespan 250"],
            "-r -k 0 --read-period 500",
            MATCH,
        ),
        GAPS,
    ),
    with_rule(case("four instances", "§2.2.2.4.2", &["--num-instances 4"], "", MATCH), FOUR),
    with_rule(case("100 KB", "§2.2.2.4.2", &["-r -k 0 --additional-payload-size 100000"], "-r -k 0", MATCH), LARGE),
    with_rule(
        case("1 MB", "§2.2.2.4.2", &["-r -k 0 --write-period 200 --additional-payload-size 1000000"], "-r -k 0", MATCH),
        LARGE,
    ),
    with_rule(
        case(
            "10 MB",
            "§2.2.2.4.2",
            &["-r -k 0 --write-period 1000 --additional-payload-size 10000000"],
            "-r -k 0",
            MATCH,
        ),
        LARGE,
    ),
    case(
        "unregistered",
        "§2.2.2.4.2.7",
        &["-r --num-iterations 60 --num-instances 2 --final-instance-state u"],
        "-r",
        (End::Fine, End::WithoutWriters),
    ),
    case(
        "disposed",
        "§2.2.2.4.2.13",
        &["-r --num-iterations 60 --num-instances 2 --final-instance-state d"],
        "-r",
        (End::Fine, End::Disposed),
    ),
];
