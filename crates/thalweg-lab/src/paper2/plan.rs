//! What is measured: the paper's counts, and what goes beyond it.

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper2Plan {
    /// Whether everything has to be done within a quarter of an hour.
    pub is_quick: bool,
    /// Decides the order of the runs.
    pub seed: u64,
    /// CPUs that all hosts share.
    pub cpus: usize,
}

/// A part of the preset: a scenario of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name of its directory.
    pub name: &'static str,
    /// What it asks.
    pub title: &'static str,
    /// The scenario file.
    pub text: String,
}

/// What distinguishes the parts.
struct Shape {
    name: &'static str,
    title: &'static str,
    endpoints: Vec<u32>,
    payload_bytes: Vec<u32>,
    /// All subscribers together.
    deliveries_hz: u32,
    rate_mbit: Option<u32>,
}

impl Paper2Plan {
    /// The parts in the order of their runs.
    pub fn parts(&self) -> Vec<Part> {
        let counts = self.counts();
        let beyond: Vec<u32> = if self.is_quick { vec![LENGTHS_COUNT] } else { vec![3, LENGTHS_COUNT] };
        let mut shapes = vec![
            Shape {
                name: "participants",
                title: "One to many participants",
                endpoints: counts.clone(),
                payload_bytes: vec![PAPER_BYTES],
                deliveries_hz: DELIVERIES_HZ,
                rate_mbit: None,
            },
            Shape {
                name: "overload",
                title: "More than the machine can carry",
                endpoints: counts,
                payload_bytes: vec![PAPER_BYTES],
                deliveries_hz: OVERLOAD_HZ,
                rate_mbit: None,
            },
            Shape {
                name: "lengths",
                title: "Other data lengths",
                endpoints: beyond.clone(),
                payload_bytes: if self.is_quick { vec![8_192] } else { vec![1_024, 8_192, 65_536] },
                deliveries_hz: DELIVERIES_HZ / 10,
                rate_mbit: None,
            },
            Shape {
                name: "slow-link",
                title: "A link of 10 Mbit/s",
                endpoints: beyond,
                payload_bytes: vec![PAPER_BYTES],
                deliveries_hz: DELIVERIES_HZ,
                rate_mbit: Some(10),
            },
        ];
        // The overload tells about throughput only, at a few counts where time is short.
        if self.is_quick {
            shapes[1].endpoints.retain(|count| *count == LENGTHS_COUNT);
        }
        shapes.into_iter().map(|shape| Part { name: shape.name, title: shape.title, text: self.text(&shape) }).collect()
    }

    /// The paper's counts that this machine carries.
    fn counts(&self) -> Vec<u32> {
        PAPER_COUNTS.into_iter().filter(|count| self.why_not(*count).is_none()).collect()
    }

    fn why_not(&self, count: u32) -> Option<String> {
        let most = COUNT_PER_CPU * self.cpus as u32;
        if count > most {
            return Some(format!(
                "{count} publishers and {count} subscribers: {} participants on {} CPUs spend them on finding each other and on wake-ups; \
                 {most} of each are the most here",
                2 * count,
                self.cpus
            ));
        }
        (self.is_quick && count > QUICK_COUNT_MAX).then(|| {
            format!("{count} publishers and {count} subscribers: not in a quarter of an hour; leave out --quick")
        })
    }

    /// What the paper has and this plan has not, with the reason.
    pub fn omitted(&self) -> Vec<String> {
        PAPER_COUNTS.into_iter().filter_map(|count| self.why_not(count)).collect()
    }

    fn text(&self, shape: &Shape) -> String {
        let endpoints: Vec<String> = shape.endpoints.iter().map(|count| format!("\"{count}-{count}\"")).collect();
        let link = shape.rate_mbit.map(|rate| format!("\n[link]\nrate_mbit = {rate}\n")).unwrap_or_default();
        let (seconds, runs) = if self.is_quick { (2, 6) } else { (20, 12) };
        format!(
            "schema = \"thalweg.scenario/1\"\nname = \"paper2-{}\"\nseed = {}\n\
             # Publishers and subscribers spread evenly, as over the paper's four virtual machines.\n\
             hosts = \"netns:4\"\n\n\
             [matrix]\npayload_bytes = {:?}\ndeliveries_hz = {}\nendpoints = [{}]\n\
             destination = [\"unicast\", \"multicast\", \"auto\"]\n\n\
             [qos]\nreliability = \"reliable\"\n{link}\n\
             [schedule]\nseconds = {seconds}\nruns = {runs}\nwarm_up_s = 1\nin_time_ms = 100\nbehind_max_ms = 200\ndrain_s = 0.5\n\n\
             [system]\nattempts = {}\n",
            shape.name,
            self.seed,
            shape.payload_bytes,
            shape.deliveries_hz,
            endpoints.join(", "),
            if self.is_quick { 1 } else { 3 },
        )
    }
}

/// Publishers, and as many subscribers.
const PAPER_COUNTS: [u32; 6] = [1, 3, 10, 25, 50, 75];
const PAPER_BYTES: u32 = 100;
/// Of each kind; found by trying what two CPUs match and carry without standing still.
const COUNT_PER_CPU: u32 = 25;
const QUICK_COUNT_MAX: u32 = 25;
/// The count for which lengths and links vary.
const LENGTHS_COUNT: u32 = 10;
/// A load under which two CPUs are busy and not full.
const DELIVERIES_HZ: u32 = 5_000;
/// As much as one publisher can be asked for, and more than two CPUs deliver.
const OVERLOAD_HZ: u32 = 100_000;
