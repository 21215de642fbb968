//! Processes of a run: their endpoints and topics.

use std::path::{Path, PathBuf};

use thalweg_lab_station::{PublisherPlace, SubscriberPlace};

use crate::scenario::{Affinity, Cell, ChainStage, Process, ProcessModel, Topics};

/// The endpoints of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Name of the process in messages.
    pub(super) name: String,
    pub(super) publishers: Vec<PublisherPlace>,
    pub(super) subscribers: Vec<SubscriberPlace>,
    /// The flow of these endpoints, by its place among those of the run.
    pub(super) flow: usize,
    /// The publisher of another flow that publishes for what the subscriber takes.
    pub(super) onward: Option<(usize, PublisherPlace)>,
}

/// The folder of a cell's records in that of a run.
pub(crate) fn flow_folder(run: &Path, cell: &Cell) -> PathBuf {
    cell.flow.as_ref().map_or_else(|| run.to_path_buf(), |flow| run.join(format!("flow-{}", flow.name)))
}

/// The processes of all flows of a run.
pub(super) fn shares(process: &Process, cells: &[Cell]) -> Vec<Share> {
    let of_flow = |flow: usize| {
        let named = |share: Share| {
            let name = cells[flow].flow.as_ref().map(|flow| format!("{}: ", flow.name)).unwrap_or_default();
            Share { name: format!("{name}{}", share.name), flow, ..share }
        };
        shares_of_flow(process, cells, flow).into_iter().map(named).collect::<Vec<_>>()
    };
    let stages = (0..cells.len()).filter_map(|flow| stage(process, cells, flow));
    (0..cells.len()).flat_map(of_flow).chain(stages).collect()
}

/// The process that hears another flow and publishes this one.
fn stage(process: &Process, cells: &[Cell], flow: usize) -> Option<Share> {
    let own = cells[flow].flow.as_ref()?;
    let ChainStage { source, subscriber: index, .. } = own.after.as_ref()?;
    let source = *source as usize;
    let cpu = match &process.affinity {
        Affinity::Free => None,
        Affinity::Lists { subscribers, .. } => cpu(*index, subscribers),
    };
    Some(Share {
        name: format!("{}: process that publishes", own.name),
        publishers: Vec::new(),
        subscribers: vec![subscriber(&cells[source], *index, cpu)],
        flow: source,
        onward: Some((flow, publisher(&cells[flow], 0, cpu))),
    })
}

fn cpu(index: u32, cpus: &[usize]) -> Option<usize> {
    cpus.get(index as usize % cpus.len().max(1)).copied()
}

/// The processes of a flow but those of chains; subscribers first, so that they miss no sample.
fn shares_of_flow(process: &Process, cells: &[Cell], flow: usize) -> Vec<Share> {
    let cell = &cells[flow];
    let after = |cell: &Cell| cell.flow.as_ref().and_then(|flow| flow.after.clone());
    let stages = cells.iter().filter_map(after).filter(|stage| stage.source as usize == flow).count() as u32;
    let own_publishers = if after(cell).is_some() { 0 } else { cell.publishers };
    let (publisher_cpus, subscriber_cpus) = match &process.affinity {
        Affinity::Free => (&[][..], &[][..]),
        Affinity::Lists { publishers, subscribers } => (publishers.as_slice(), subscribers.as_slice()),
    };
    let publishers = (0..own_publishers).map(|index| publisher(cell, index, cpu(index, publisher_cpus)));
    let subscribers = (0..cell.subscribers - stages).map(|index| subscriber(cell, index, cpu(index, subscriber_cpus)));
    let all: Vec<Share> = match process.model {
        ProcessModel::PerEndpoint => {
            // Other vendors' processes are named as such.
            let whose = cell.middleware.peer().map(|_| format!(" ({})", cell.middleware)).unwrap_or_default();
            let readers = subscribers.map(|one| Share {
                name: format!("subscriber {}{whose}", one.index),
                subscribers: vec![one],
                ..Share::default()
            });
            let writers = publishers.map(|one| Share {
                name: format!("publisher {}{whose}", one.index),
                publishers: vec![one],
                ..Share::default()
            });
            readers.chain(writers).collect()
        }
        ProcessModel::PerRole => vec![
            Share {
                name: "process of all subscribers".to_owned(),
                subscribers: subscribers.collect(),
                ..Share::default()
            },
            Share {
                name: "process of all publishers".to_owned(),
                publishers: publishers.collect(),
                ..Share::default()
            },
        ],
        ProcessModel::Single => vec![Share {
            name: "process of all endpoints".to_owned(),
            publishers: publishers.collect(),
            subscribers: subscribers.collect(),
            ..Share::default()
        }],
    };
    all.into_iter().filter(|share| !share.publishers.is_empty() || !share.subscribers.is_empty()).collect()
}

fn publisher(cell: &Cell, index: u32, cpu: Option<usize>) -> PublisherPlace {
    let readers = cell.pairs().filter(|(writer, _)| *writer == index).count();
    PublisherPlace { index, cpu, topic: topic(cell, index), readers }
}

fn subscriber(cell: &Cell, index: u32, cpu: Option<usize>) -> SubscriberPlace {
    let writers: Vec<u32> = cell.pairs().filter(|(_, reader)| *reader == index).map(|(writer, _)| writer).collect();
    let topics = match cell.topics {
        Topics::One => vec![topic(cell, 0)],
        Topics::PerPair | Topics::PerPublisher => writers.iter().map(|writer| topic(cell, *writer)).collect(),
    };
    SubscriberPlace { index, cpu, topics, writers }
}

/// Topic of a publisher.
fn topic(cell: &Cell, publisher: u32) -> String {
    let flow = cell.flow.as_ref().map(|flow| format!("_{}", flow.name)).unwrap_or_default();
    match cell.topics {
        Topics::One => format!("thalweg_lab_scenario{flow}"),
        Topics::PerPair | Topics::PerPublisher => format!("thalweg_lab_scenario{flow}_{publisher}"),
    }
}

/// Writers and readers of each topic.
pub(super) fn topic_endpoints(cell: &Cell) -> (u32, u32) {
    match cell.topics {
        Topics::One => (cell.publishers, cell.subscribers),
        Topics::PerPair => (1, 1),
        Topics::PerPublisher => (1, cell.subscribers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn shares_of(matrix: &str, process: &str) -> Vec<Share> {
        let matrix = format!("payload_bytes = 1\nrate_hz = 1\n{matrix}");
        let scenario = fixtures::scenario_with(&matrix, &format!("seconds = 1\nruns = 1\n[process]\n{process}"));
        shares(&scenario.process, &scenario.cells[..1])
    }

    #[test]
    fn endpoints_share_processes_and_cpus_as_the_scenario_says() {
        let each = shares_of("endpoints = \"2-3\"", "model = \"per-endpoint\"");
        let names: Vec<&str> = each.iter().map(|share| share.name.as_str()).collect();
        assert_eq!(names[2..4], ["subscriber 2", "publisher 0"]);
        assert!(each.iter().all(|share| share.publishers.len() + share.subscribers.len() == 1));
        let process = "model = \"per-role\"\naffinity = { publishers = [0], subscribers = [0] }";
        let roles = shares_of("endpoints = \"2-3\"", process);
        assert_eq!((roles.len(), roles[0].subscribers.len(), roles[1].publishers.len()), (2, 3, 2));
        assert!(roles[0].subscribers.iter().all(|place| place.cpu == Some(0)));
        assert_eq!(shares_of("endpoints = \"2-3\"", "model = \"single\"").len(), 1);
    }

    /// Topics and writers of the last subscriber, topic and readers of the last publisher.
    #[track_caller]
    fn check(matrix: &str, (topics, writers): (&[&str], &[u32]), (topic, readers): (&str, usize)) {
        let shares = shares_of(matrix, "");
        let subscriber = shares.iter().rev().find_map(|share| share.subscribers.last()).expect("a subscriber");
        let publisher = shares.last().and_then(|share| share.publishers.last()).expect("a publisher");
        let name = |number: &&str| format!("thalweg_lab_scenario{number}");
        assert_eq!(subscriber.topics, topics.iter().map(name).collect::<Vec<_>>());
        assert_eq!(subscriber.writers, writers);
        assert_eq!((publisher.topic.clone(), publisher.readers), (name(&topic), readers));
    }

    #[test]
    fn topics_decide_who_hears_whom() {
        check("endpoints = \"2-3\"", (&[""], &[0, 1]), ("", 3));
        check("endpoints = \"3-3\"\ntopics = \"per-pair\"", (&["_2"], &[2]), ("_2", 1));
        check("endpoints = \"3-2\"\ntopics = \"per-publisher\"", (&["_0", "_1", "_2"], &[0, 1, 2]), ("_2", 2));
    }

    #[test]
    fn processes_of_other_vendors_are_named_as_such() {
        assert_eq!(shares_of("middleware = \"cyclone-tuned\"", "")[1].name, "publisher 0 (cyclone-tuned)");
    }
}
