//! What a reader asks for so that it matches some writers of a topic.

use thalweg::discovery::PublicationData;
use thalweg::qos::{Durability, History, Ownership, ReaderQos, Reliability};

/// What a reader asks for, which is what some writers offer. Writers that offer more match it as well: a topic has one reader for each
/// demand of its writers, and the samples of a writer count at its own reader only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// RELIABLE.
    pub is_reliable: bool,
    /// TRANSIENT_LOCAL: what writers keep for late readers comes as well.
    pub is_durable: bool,
    /// Whose samples count.
    pub ownership: Ownership,
    /// Names that fit the writers' partitions.
    pub partition: Vec<String>,
}

impl Demand {
    /// What the reader of this writer asks for.
    pub fn of(data: &PublicationData) -> Demand {
        Demand {
            is_reliable: data.qos.reliability.is_reliable(),
            is_durable: data.qos.durability != Durability::Volatile,
            ownership: data.qos.ownership.kind(),
            partition: data.qos.partition.iter().map(|name| fitting(name)).collect(),
        }
    }

    /// The reader's QoS, for one whose samples are taken as they come.
    pub fn to_reader_qos(&self) -> ReaderQos {
        ReaderQos {
            reliability: if self.is_reliable { Reliability::RELIABLE } else { Reliability::BestEffort },
            durability: if self.is_durable { Durability::TransientLocal } else { Durability::Volatile },
            // Samples leave as they come. KEEP_ALL would let a full reader hold back the robot's writers.
            history: History::KeepLast(DEPTH),
            ownership: self.ownership,
            partition: self.partition.clone(),
            ..ReaderQos::default()
        }
    }
}

/// A name that fits a writer's partition, which may be a pattern: two patterns never match.
fn fitting(partition: &str) -> String {
    partition.chars().filter(|character| *character != '*').map(|c| if c == '?' { 'x' } else { c }).collect()
}

/// Samples of an instance that wait until the I/O thread hands them over, which it does at once.
const DEPTH: u32 = 1_024;
