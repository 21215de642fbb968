//! The suite's options; their short names and values are those of all its programs.

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

#[derive(Args, Debug)]
#[command(
    group = ArgGroup::new("role").required(true).args(["publisher", "subscriber"]),
    after_help = crate::after_help!(
        "thalweg shapes -P -t Square -c RED --num-iterations 5",
        "thalweg shapes -S -t Square --num-iterations 5"
    )
)]
/// Publishes or subscribes to moving shapes, as the shapes programs of other vendors do.
pub struct ShapesOptions {
    /// Publish shapes (default: neither; one of -P and -S must be given).
    #[arg(short = 'P')]
    pub publisher: bool,

    /// Subscribe to shapes (default: neither; one of -P and -S must be given).
    #[arg(short = 'S')]
    pub subscriber: bool,

    /// Domain (default: 0).
    #[arg(short = 'd', value_name = "DOMAIN", default_value_t = 0, hide_default_value = true)]
    pub domain: u32,

    /// BEST_EFFORT (default: RELIABLE).
    #[arg(short = 'b')]
    pub best_effort: bool,

    /// RELIABLE (default: RELIABLE).
    #[arg(short = 'r', conflicts_with = "best_effort")]
    pub reliable: bool,

    /// KEEP_LAST with this depth; 0 is KEEP_ALL (default: KEEP_LAST 1).
    #[arg(short = 'k', value_name = "DEPTH")]
    pub depth: Option<u32>,

    /// DEADLINE in milliseconds; 0 is infinite (default: 0).
    #[arg(short = 'f', value_name = "MS", default_value_t = 0, hide_default_value = true)]
    pub deadline: u64,

    /// Exclusive OWNERSHIP with this strength; -1 is shared (default: -1).
    #[arg(short = 's', value_name = "STRENGTH", default_value_t = -1, hide_default_value = true, allow_negative_numbers = true)]
    pub strength: i32,

    /// Name of the topic, such as Square (default: none; it must be given).
    #[arg(short = 't', value_name = "TOPIC")]
    pub topic: String,

    /// The color that a publisher writes, or the only one that a subscriber wants (default: BLUE, or all).
    #[arg(short = 'c', value_name = "COLOR")]
    pub color: Option<String>,

    /// PARTITION (default: none).
    #[arg(short = 'p', value_name = "NAME")]
    pub partition: Option<String>,

    /// DURABILITY: v, l, t or p for volatile, transient-local, transient, persistent (default: v). Persistent shapes are kept where
    /// `participant.store` of the configuration says, else below thalweg/shapes in $XDG_STATE_HOME or in ~/.local/state; late subscribers
    /// get those of earlier publishers as well, until that folder is deleted.
    #[arg(short = 'D', value_name = "KIND", value_enum, default_value = "v", hide_default_value = true)]
    pub durability: DurabilityWord,

    /// DATA_REPRESENTATION: 1 is XCDR1, 2 is XCDR2 (default: 1).
    #[arg(short = 'x', value_name = "1|2", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub representation: u8,

    /// Print each sample that is written (default: no).
    #[arg(short = 'w')]
    pub prints_written: bool,

    /// Size of the shapes; 0 starts at 1 and grows by 1 with each iteration (default: 20).
    #[arg(short = 'z', value_name = "SIZE", default_value_t = 20, hide_default_value = true)]
    pub size: u32,

    /// Read samples instead of taking them (default: take).
    #[arg(short = 'R')]
    pub reads: bool,

    /// Say more: e for errors, d for everything; accepted and without effect (default: e).
    #[arg(short = 'v', value_name = "e|d", default_value = "e", hide_default_value = true)]
    pub verbosity: String,

    /// With -z 0, sizes go from 1 to N and begin anew (default: no end).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub size_modulo: Option<u32>,

    /// Take or read all instances at once (default: one instance after the other).
    #[arg(long)]
    pub take_read: bool,

    /// Pause after each write iteration (default: 33).
    #[arg(long, value_name = "MS", default_value_t = 33, hide_default_value = true)]
    pub write_period: u64,

    /// Pause after each read iteration (default: 100).
    #[arg(long, value_name = "MS", default_value_t = 100, hide_default_value = true)]
    pub read_period: u64,

    /// TIME_BASED_FILTER of a subscriber in milliseconds; 0 is off (default: 0).
    #[arg(long, value_name = "MS", default_value_t = 0, hide_default_value = true)]
    pub time_filter: u64,

    /// LIFESPAN of a publisher in milliseconds (default: infinite).
    #[arg(long, value_name = "MS")]
    pub lifespan: Option<u64>,

    /// Iterations before the end (default: no end).
    #[arg(long, value_name = "N")]
    pub num_iterations: Option<u64>,

    /// Instances that a publisher writes: C, C1, C2 and so on for the color C (default: 1).
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true)]
    pub num_instances: u32,

    /// Topics: T, T1, T2 and so on for the topic T (default: 1).
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true)]
    pub num_topics: u32,

    /// What a publisher does with its instances in the end: u unregisters, d disposes them (default: nothing).
    #[arg(long, value_name = "u|d", value_enum)]
    pub final_instance_state: Option<FinalState>,

    /// PRESENTATION's access scope: i, t or g for instance, topic, group (default: i).
    #[arg(long, value_name = "SCOPE", value_enum, default_value = "i", hide_default_value = true)]
    pub access_scope: ScopeWord,

    /// PRESENTATION's coherent access (default: no).
    #[arg(long)]
    pub coherent: bool,

    /// PRESENTATION's ordered access (default: no).
    #[arg(long)]
    pub ordered: bool,

    /// Write iterations of a coherent set, at least 2; 0 is none (default: 0).
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub coherent_sample_count: u64,

    /// Bytes of 255 that a publisher adds to each sample (default: 0).
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true)]
    pub additional_payload_size: usize,

    /// Period of announcements in milliseconds; accepted and without effect (default: 0).
    #[arg(long, value_name = "MS", default_value_t = 0, hide_default_value = true)]
    pub periodic_announcement: u64,

    /// Size of fragments, at most 65535 (default: what the path allows).
    #[arg(long, value_name = "BYTES")]
    pub datafrag_size: Option<usize>,

    /// Content filter of a subscriber, such as "shapesize <= 20" (default: none).
    #[arg(long, value_name = "EXPRESSION")]
    pub cft: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DurabilityWord {
    #[value(name = "v")]
    Volatile,
    #[value(name = "l")]
    TransientLocal,
    #[value(name = "t")]
    Transient,
    #[value(name = "p")]
    Persistent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FinalState {
    #[value(name = "u")]
    Unregister,
    #[value(name = "d")]
    Dispose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScopeWord {
    #[value(name = "i")]
    Instance,
    #[value(name = "t")]
    Topic,
    #[value(name = "g")]
    Group,
}

impl ShapesOptions {
    pub fn publishes(&self) -> bool {
        self.publisher
    }

    /// What is said about options that are left aside or missing.
    pub fn remarks(&self) -> Vec<&'static str> {
        let mut remarks = Vec::new();
        if self.publisher && self.color.is_none() {
            remarks.push("warning: color was not specified, defaulting to BLUE");
        }
        if self.publisher && (self.time_filter > 0 || self.cft.is_some() || self.reads) {
            remarks.push("warning: options of a subscriber are ignored by a publisher");
        }
        if self.subscriber && (self.lifespan.is_some() || self.prints_written || self.final_instance_state.is_some()) {
            remarks.push("warning: options of a publisher are ignored by a subscriber");
        }
        remarks
    }

    /// The topics' names.
    pub fn topics(&self) -> Vec<String> {
        numbered(&self.topic, self.num_topics)
    }

    /// The colors that a publisher writes.
    pub fn colors(&self) -> Vec<String> {
        numbered(self.color.as_deref().unwrap_or("BLUE"), self.num_instances)
    }

    /// The expression by which a subscriber filters.
    pub fn filter(&self) -> Option<String> {
        let color = self.color.as_ref().filter(|_| self.subscriber);
        self.cft.clone().or_else(|| color.map(|color| format!("color = '{color}'")))
    }

    pub fn write_period(&self) -> Duration {
        Duration::from_millis(self.write_period)
    }

    pub fn read_period(&self) -> Duration {
        Duration::from_millis(self.read_period)
    }
}

/// The name alone, then with the numbers from 1.
fn numbered(name: &str, count: u32) -> Vec<String> {
    let others = (1..count.max(1)).map(|number| format!("{name}{number}"));
    std::iter::once(name.to_owned()).chain(others).collect()
}
