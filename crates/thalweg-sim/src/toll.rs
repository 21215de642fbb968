//! Counts of each writer's datagrams that the network drops.

use std::collections::BTreeMap;

use thalweg_rtps::types::{EntityId, Guid, GuidPrefix};
use thalweg_rtps::wire::{Message, Submessage};

/// Submessages with samples of one writer that did not arrive, each counted for each host that missed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toll {
    /// The weather lost them, or a receive buffer was full, or the path was cut off or too narrow.
    pub lost: u64,
    /// The queue of a lane dropped them: more was sent than the lane carries.
    pub dropped: u64,
}

/// The tolls of all writers.
pub(crate) type Tolls = BTreeMap<Guid, Toll>;

/// Why a datagram does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    Network,
    Queue,
}

/// Notes that a datagram did not arrive.
pub(crate) fn charge(tolls: &mut Tolls, datagram: &[u8], blame: Blame) {
    let (Ok(message), Some(prefix)) = (Message::parse(datagram), datagram.get(8..20)) else { return };
    let Ok(prefix) = prefix.try_into().map(GuidPrefix) else { return };
    for submessage in message.submessages().flatten() {
        let Some(writer) = writer_of(&submessage) else { continue };
        let toll = tolls.entry(Guid::new(prefix, writer)).or_default();
        match blame {
            Blame::Network => toll.lost += 1,
            Blame::Queue => toll.dropped += 1,
        }
    }
}

fn writer_of(submessage: &Submessage<'_>) -> Option<EntityId> {
    match submessage {
        Submessage::Data(data) => Some(data.writer),
        Submessage::DataFrag(data) => Some(data.writer),
        Submessage::DataBatch(batch) => Some(batch.writer),
        _ => None,
    }
}
