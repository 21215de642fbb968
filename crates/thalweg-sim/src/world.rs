//! Worlds: properties fixed by a test, properties drawn from the seed, and the verdict at the end.

use thalweg_rtps::qos::{History, Method};

use crate::draw::{Fixed, draw};
use crate::laws::{self, Law};
use crate::network::Weather;
use crate::plan::Plan;
use crate::record::Record;
use crate::simulation::Simulation;
use crate::trace::Detail;

/// A world to run: properties that no method fixes follow from the seed.
#[derive(Clone, Debug)]
pub struct World {
    seed: u64,
    fixed: Fixed,
}

impl World {
    /// A world whose everything follows from `seed`.
    pub fn new(seed: u64) -> World {
        World { seed, fixed: Fixed::default() }
    }

    /// The number of hosts.
    pub fn hosts(mut self, count: usize) -> World {
        self.fixed.hosts = Some(count);
        self
    }

    /// The number of participants, each a process of its own.
    pub fn participants(mut self, count: usize) -> World {
        self.fixed.processes = Some(count);
        self
    }

    /// The number of topics.
    pub fn topics(mut self, count: usize) -> World {
        self.fixed.topics = Some(count);
        self
    }

    /// The number of writers of each topic.
    pub fn writers(mut self, count: usize) -> World {
        self.fixed.writers = Some(count);
        self
    }

    /// The number of readers of each topic.
    pub fn readers(mut self, count: usize) -> World {
        self.fixed.readers = Some(count);
        self
    }

    /// The number of samples of each writer.
    pub fn samples(mut self, count: u32) -> World {
        self.fixed.samples = Some(count);
        self
    }

    /// The bytes of each sample, at least 16.
    pub fn payload_bytes(mut self, bytes: usize) -> World {
        self.fixed.payload_bytes = Some(bytes);
        self
    }

    /// Writers are reliable (readers mostly too).
    pub fn reliable(mut self) -> World {
        self.fixed.reliable = Some(true);
        self
    }

    /// Writers and readers are best effort.
    pub fn best_effort(mut self) -> World {
        self.fixed.reliable = Some(false);
        self
    }

    /// Writers are transient-local (readers mostly too).
    pub fn durable(mut self) -> World {
        self.fixed.durable = Some(true);
        self
    }

    /// All endpoints are VOLATILE.
    pub fn volatile(mut self) -> World {
        self.fixed.durable = Some(false);
        self
    }

    /// HISTORY of the writers (readers mostly have the same).
    pub fn history(mut self, history: History) -> World {
        self.fixed.history = Some(history);
        self
    }

    /// The transmission method of the writers.
    pub fn method(mut self, method: Method) -> World {
        self.fixed.method = Some(method);
        self
    }

    /// Probability that a packet between hosts is lost.
    pub fn loss(mut self, probability: f64) -> World {
        self.fixed.loss = Some(probability);
        self
    }

    /// The weather between hosts.
    pub fn weather(mut self, weather: Weather) -> World {
        self.fixed.weather = Some(weather);
        self
    }

    /// No split network, no process that ends, no application that hangs.
    pub fn calm(mut self) -> World {
        self.fixed.calm = true;
        self
    }

    /// The plan.
    pub fn plan(&self) -> Plan {
        draw(self.seed, &self.fixed)
    }

    /// Lets it happen.
    pub fn run(&self) -> WorldOutcome {
        run(self.plan(), Detail::Tail)
    }
}

/// Carries out a plan.
pub fn run(plan: Plan, detail: Detail) -> WorldOutcome {
    WorldOutcome { record: Simulation::new(plan, detail).run() }
}

/// A world that is over.
#[derive(Debug)]
pub struct WorldOutcome {
    record: Record,
}

/// A broken law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Seed of the world.
    pub seed: u64,
    /// Name of the law.
    pub law: String,
    /// The way in which it was broken.
    pub how: String,
    /// The last things that happened.
    pub tail: String,
}

impl std::fmt::Display for Breach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}seed {} breaks {}: {}", self.tail, self.seed, self.law, self.how)
    }
}

impl WorldOutcome {
    /// The record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// A number that is the same for every run of the same world.
    pub fn trace_hash(&self) -> u64 {
        self.record.trace.hash()
    }

    /// Checks one law.
    ///
    /// # Panics
    /// When it is broken; the message names the seed and shows the last things that happened.
    #[track_caller]
    pub fn check<L: Fn(&Record) -> Result<(), String>>(&self, law: L) -> &WorldOutcome {
        let breach = law(&self.record).err().map(|how| self.breach(std::any::type_name::<L>(), how));
        assert!(breach.is_none(), "{}", breach.map(|breach| breach.to_string()).unwrap_or_default());
        self
    }

    /// Checks every law.
    ///
    /// # Panics
    /// As [`WorldOutcome::check`].
    #[track_caller]
    pub fn check_all(&self) -> &WorldOutcome {
        let breach = self.verify().err();
        assert!(breach.is_none(), "{}", breach.map(|breach| breach.to_string()).unwrap_or_default());
        self
    }

    /// Looks for a broken law.
    ///
    /// # Errors
    /// The first law that is broken.
    pub fn verify(&self) -> Result<(), Breach> {
        let broken = laws::that_apply(&self.record)
            .iter()
            .find_map(|(name, law): &(&str, Law)| Some((*name, law(&self.record).err()?)));
        broken.map_or(Ok(()), |(name, how)| Err(self.breach(name, how)))
    }

    fn breach(&self, law: &str, how: String) -> Breach {
        Breach { seed: self.record.plan.seed, law: law.to_string(), how, tail: self.record.trace.to_string() }
    }
}

/// The course of the world of `seed`, a line for each step, its hash, and the law that it breaks, if any.
pub fn trace(seed: u64) -> String {
    let outcome = run(World::new(seed).plan(), Detail::Full);
    let verdict = match outcome.verify() {
        Ok(()) => "every law holds".to_string(),
        Err(breach) => format!("breaks {}: {}", breach.law, breach.how),
    };
    let record = outcome.record();
    format!("{}\n{}seed {seed}, hash {:016x}: {verdict}\n", record.plan, record.trace, outcome.trace_hash())
}
