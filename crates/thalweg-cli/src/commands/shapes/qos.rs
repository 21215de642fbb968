//! The policies that the options ask for.

use std::time::Duration;

use thalweg::qos::{
    AccessScope, Durability, DurabilityService, History, Ownership, PolicyId, Presentation, QosErrorKind, ReaderQos,
    ReaderTiming, Reliability, Representation, WriterOwnership, WriterQos, WriterTiming,
};
use thalweg::types::INFINITE;

use super::options::{DurabilityWord, FinalState, ScopeWord, ShapesOptions};

/// The name of what is asked for and not effective, as the suite calls it.
pub fn not_effective(options: &ShapesOptions) -> Option<String> {
    let refused = if options.publishes() { writer(options).check().err() } else { reader(options).check().err() };
    if options.datafrag_size.is_some() {
        return Some("datafrag-size".to_owned());
    }
    let refused = refused.filter(|error| error.kind == QosErrorKind::Unsupported)?;
    Some(match refused.policy {
        PolicyId::PRESENTATION if options.coherent => "Presentation Coherent Access".to_owned(),
        PolicyId::PRESENTATION => "Presentation Ordered Access".to_owned(),
        policy => format!("{policy} {}", refused.value),
    })
}

pub fn writer(options: &ShapesOptions) -> WriterQos {
    WriterQos {
        reliability: reliability(options),
        durability: durability(options),
        // What outlives a writer is what it keeps.
        durability_service: DurabilityService { history: history(options), ..DurabilityService::default() },
        history: history(options),
        timing: WriterTiming {
            deadline: period(options.deadline),
            lifespan: options.lifespan.map_or(INFINITE, Duration::from_millis),
            ..WriterTiming::default()
        },
        ownership: match options.strength {
            strength @ 0.. => WriterOwnership::Exclusive { strength },
            _ => WriterOwnership::Shared,
        },
        data_representation: representations(options),
        autodispose: options.final_instance_state != Some(FinalState::Unregister),
        presentation: presentation(options),
        partition: options.partition.iter().cloned().collect(),
        ..WriterQos::default()
    }
}

pub fn reader(options: &ShapesOptions) -> ReaderQos {
    ReaderQos {
        reliability: reliability(options),
        durability: durability(options),
        history: history(options),
        timing: ReaderTiming {
            deadline: period(options.deadline),
            minimum_separation: Duration::from_millis(options.time_filter),
            ..ReaderTiming::default()
        },
        ownership: if options.strength >= 0 { Ownership::Exclusive } else { Ownership::Shared },
        data_representation: representations(options),
        presentation: presentation(options),
        partition: options.partition.iter().cloned().collect(),
        ..ReaderQos::default()
    }
}

/// A period in milliseconds; 0 is none.
fn period(millis: u64) -> Duration {
    if millis == 0 { INFINITE } else { Duration::from_millis(millis) }
}

fn reliability(options: &ShapesOptions) -> Reliability {
    if options.best_effort { Reliability::BestEffort } else { Reliability::RELIABLE }
}

fn durability(options: &ShapesOptions) -> Durability {
    match options.durability {
        DurabilityWord::Volatile => Durability::Volatile,
        DurabilityWord::TransientLocal => Durability::TransientLocal,
        DurabilityWord::Transient => Durability::Transient,
        DurabilityWord::Persistent => Durability::Persistent,
    }
}

fn history(options: &ShapesOptions) -> History {
    match options.depth {
        None => History::KeepLast(1),
        Some(0) => History::KeepAll,
        Some(depth) => History::KeepLast(depth),
    }
}

fn representations(options: &ShapesOptions) -> Vec<Representation> {
    vec![if options.representation == 1 { Representation::Xcdr1 } else { Representation::Xcdr2 }]
}

pub fn presentation(options: &ShapesOptions) -> Presentation {
    let access_scope = match options.access_scope {
        ScopeWord::Instance => AccessScope::Instance,
        ScopeWord::Topic => AccessScope::Topic,
        ScopeWord::Group => AccessScope::Group,
    };
    Presentation { access_scope, coherent: options.coherent, ordered: options.ordered }
}
