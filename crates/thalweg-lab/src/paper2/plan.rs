//! The plan: the paper's counts, and cells beyond them.

/// The extent of the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper2Plan {
    /// Numbers of publishers, and of as many subscribers.
    pub counts: Vec<u32>,
    /// Those with which as much is offered as the machine carries, or more.
    pub overloaded: Vec<u32>,
    /// Those for which lengths and links vary.
    pub varied: Vec<u32>,
    /// Other lengths than the paper's.
    pub payload_bytes: Vec<u32>,
    /// Length of a measurement in seconds.
    pub seconds: u32,
    /// Sent before and not counted, in seconds.
    pub warm_up_s: f64,
    /// Runs of each cell.
    pub runs: u32,
    /// Attempts at each run on a machine that is not quiet.
    pub attempts: u32,
    /// Decides the order of the runs.
    pub seed: u64,
    /// What the paper has and this plan has not, with the reason.
    pub omitted: Vec<String>,
    /// The command that asks for this plan.
    pub command: String,
}

/// A part of the preset: a scenario of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name of its directory.
    pub name: &'static str,
    /// Its question.
    pub title: &'static str,
    /// The scenario file.
    pub text: String,
}

/// The differences between the parts.
#[derive(Clone, Copy)]
struct Shape<'a> {
    name: &'static str,
    title: &'static str,
    endpoints: &'a [u32],
    payload_bytes: &'a [u32],
    /// All subscribers together.
    deliveries_hz: u32,
    seconds: u32,
    rate_mbit: Option<u32>,
}

impl Paper2Plan {
    /// All that a machine with so many CPUs carries.
    pub fn full(seed: u64, cpus: usize) -> Paper2Plan {
        let most = COUNT_PER_CPU * cpus as u32;
        let why_not = |count: u32| {
            format!(
                "{count} publishers and {count} subscribers: nobody has tried {} participants on {cpus} CPUs; {most} of each are the \
                 most here, and --counts asks for more",
                2 * count
            )
        };
        let (counts, omitted): (Vec<u32>, Vec<u32>) = PAPER_COUNTS.into_iter().partition(|count| *count <= most);
        Paper2Plan {
            overloaded: counts.iter().copied().filter(|count| *count > 1).collect(),
            counts,
            varied: vec![3, 10],
            payload_bytes: vec![1_024, 8_192, 65_536],
            seconds: 20,
            warm_up_s: 2.0,
            runs: 12,
            attempts: 3,
            seed,
            omitted: omitted.into_iter().map(why_not).chain([ONE_PUBLISHER.to_owned()]).collect(),
            command: format!("thalweg lab run paper2 --seed {seed}"),
        }
    }

    /// The cells that fit into a quarter of an hour.
    pub fn quick(seed: u64, cpus: usize) -> Paper2Plan {
        let full = Paper2Plan::full(seed, cpus);
        let (counts, longer): (Vec<u32>, Vec<u32>) = full.counts.iter().partition(|count| **count <= QUICK_COUNT_MAX);
        let why_not = |count: u32| {
            format!("{count} publishers and {count} subscribers: not in a quarter of an hour; leave out --quick")
        };
        Paper2Plan {
            counts,
            overloaded: vec![10],
            varied: vec![10],
            payload_bytes: vec![8_192],
            seconds: 2,
            warm_up_s: 0.5,
            runs: 10,
            attempts: 2,
            omitted: longer.into_iter().map(why_not).chain(full.omitted).collect(),
            seed,
            command: format!("thalweg lab run paper2 --quick --seed {seed}"),
        }
    }

    /// Measures these numbers and no others, at the limit of the machine too from two of each on; the other parts keep theirs of
    /// them.
    pub fn with_counts(mut self, counts: &[u32]) -> Paper2Plan {
        self.varied.retain(|count| counts.contains(count));
        self.overloaded = counts.iter().copied().filter(|count| *count > 1).collect();
        let mut omitted: Vec<u32> = PAPER_COUNTS.to_vec();
        omitted.retain(|count| !counts.contains(count));
        let not_asked = |count: u32| format!("{count} publishers and {count} subscribers: not asked for");
        self.omitted = omitted.into_iter().map(not_asked).chain([ONE_PUBLISHER.to_owned()]).collect();
        self.counts = counts.to_vec();
        let listed: Vec<String> = counts.iter().map(u32::to_string).collect();
        self.command += &format!(" --counts {}", listed.join(","));
        self
    }

    /// Makes so many runs of each cell.
    pub fn with_runs(mut self, runs: u32) -> Paper2Plan {
        self.runs = runs;
        self.command += &format!(" --runs {runs}");
        self
    }

    /// The parts in the order of their runs.
    pub fn parts(&self) -> Vec<Part> {
        let participants = Shape {
            name: "participants",
            title: "One to many participants",
            endpoints: &self.counts,
            payload_bytes: &[PAPER_BYTES],
            deliveries_hz: DELIVERIES_HZ,
            seconds: self.seconds,
            rate_mbit: None,
        };
        let overload = Shape {
            name: "overload",
            title: "At the limit of the machine",
            endpoints: &self.overloaded,
            deliveries_hz: OVERLOAD_HZ,
            // A sum needs no tail, and every sample is kept.
            seconds: self.seconds.min(OVERLOAD_SECONDS_MAX),
            ..participants
        };
        let lengths = Shape {
            name: "lengths",
            title: "Other data lengths",
            endpoints: &self.varied,
            payload_bytes: &self.payload_bytes,
            deliveries_hz: DELIVERIES_HZ / 10,
            ..participants
        };
        let slow_link = Shape {
            name: "slow-link",
            title: "Links of 10 Mbit/s",
            endpoints: &self.varied,
            rate_mbit: Some(10),
            ..participants
        };
        let shapes = [participants, overload, lengths, slow_link];
        let is_measured = |shape: &Shape<'_>| !shape.endpoints.is_empty() && !shape.payload_bytes.is_empty();
        let part = |shape: Shape<'_>| Part { name: shape.name, title: shape.title, text: self.text(&shape) };
        shapes.into_iter().filter(is_measured).map(part).collect()
    }

    fn text(&self, shape: &Shape<'_>) -> String {
        let endpoints: Vec<String> = shape.endpoints.iter().map(|count| format!("\"{count}-{count}\"")).collect();
        let link = shape.rate_mbit.map(|rate| format!("\n[link]\nrate_mbit = {rate}\n")).unwrap_or_default();
        format!(
            "schema = \"thalweg.scenario/1\"\nname = \"paper2-{}\"\nseed = {}\n\
             # Publishers and subscribers spread evenly, as over the paper's four virtual machines.\n\
             hosts = \"netns:4\"\n\n\
             [matrix]\npayload_bytes = {:?}\ndeliveries_hz = {}\nendpoints = [{}]\n\
             destination = [\"unicast\", \"multicast\", \"auto\"]\n\n\
             [qos]\nreliability = \"reliable\"\n{link}\n\
             [schedule]\nseconds = {}\nruns = {}\nwarm_up_s = {}\nin_time_ms = 100\nbehind_max_ms = 200\ndrain_s = 0.5\nmatch_s = {MATCH_S}\n\n\
             [system]\nattempts = {}\n",
            shape.name,
            self.seed,
            shape.payload_bytes,
            shape.deliveries_hz,
            endpoints.join(", "),
            shape.seconds,
            self.runs,
            self.warm_up_s,
            self.attempts,
        )
    }
}

/// Publishers, and as many subscribers.
const PAPER_COUNTS: [u32; 6] = [1, 3, 10, 25, 50, 75];
const PAPER_BYTES: u32 = 100;
/// Of each kind: what was tried on two CPUs.
const COUNT_PER_CPU: u32 = 38;
/// Time to find each other, beside other work too.
const MATCH_S: u32 = 90;
const QUICK_COUNT_MAX: u32 = 25;
/// A load under which two CPUs are busy and not full.
const DELIVERIES_HZ: u32 = 5_000;
/// About what two CPUs deliver at most: ten publishers used 1.7 to 1.9 of them, three left out a part.
const OVERLOAD_HZ: u32 = 250_000;
const OVERLOAD_SECONDS_MAX: u32 = 2;
const ONE_PUBLISHER: &str = "throughput with 1 publisher and 1 subscriber: a schedule asks for 100,000 samples a second at most, which one publisher may carry";
