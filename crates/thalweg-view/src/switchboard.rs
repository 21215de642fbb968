//! The protocol without I/O: channels with what is known of them, clients, and what waits for each of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use thalweg::Payload;
use thalweg::types::{Guid, KeyHash};
use thalweg_recording::channel::CDR;
use thalweg_recording::demand::Demand;
use thalweg_recording::latched::{Kept, Latched};
use thalweg_recording::schema::{TypeSchema, shown_topic};

use crate::client::ClientState;
pub use crate::client::{DROPPED, Outgoing};
use crate::decoders::DecoderLimits;
use crate::protocol::{AdvertisedChannel, ClientMessage, RequestedSubscription, ServerMessage};

/// What a switchboard is made with.
#[derive(Clone, Debug)]
pub struct SwitchboardOptions {
    /// The name of the connection that clients show.
    pub name: String,
    /// Tells this run of the view from others.
    pub session_id: String,
    /// Bytes of samples that may wait for a client.
    pub client_bytes_max: usize,
    /// Samples of an instance that later clients get, of writers that keep them for late readers; 0 for none.
    pub latched_depth: usize,
}

/// The counts of a view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ViewSummary {
    /// Clients that there were.
    pub clients: u64,
    /// Samples that were sent to them.
    pub samples: u64,
    /// Samples that they were too slow for.
    pub dropped: u64,
}

impl fmt::Display for ViewSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sent {} samples to {} clients, dropped {}", self.samples, self.clients, self.dropped)
    }
}

/// Channels and clients.
pub struct Switchboard {
    options: SwitchboardOptions,
    bulletin: Bulletin,
    clients: BTreeMap<u64, ClientState>,
    latched: Latched,
    next_id: u64,
    wishes: u64,
    /// Counts of clients that have gone, and of all clients there were.
    past: ViewSummary,
}

/// What all clients are told alike.
pub struct Bulletin {
    name: String,
    session_id: String,
    channels: BTreeMap<u64, ViewedChannel>,
    /// Names and texts by the versions that they came with.
    remarks: BTreeMap<u64, (String, String)>,
    remark_versions: BTreeMap<String, u64>,
    /// Grows with each change; those are the last changes of channels, and the last remark that was taken back.
    version: u64,
    channels_version: u64,
    cleared: u64,
}

/// A topic with the writers of one type.
struct ViewedChannel {
    shown: String,
    topic: String,
    type_name: String,
    schema: Arc<TypeSchema>,
    limits: DecoderLimits,
    subscribers: BTreeSet<u64>,
    writers: HashMap<Guid, ChannelWriter>,
    /// Writers whose samples have another definition of the type.
    strangers: HashSet<Guid>,
    /// Writers of which samples are kept.
    latched: HashSet<Guid>,
}

/// What a channel needs to know of a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelWriter {
    /// What its reader asks for.
    pub demand: Demand,
    /// Samples of an instance that it keeps for late readers, if it does.
    pub kept: Option<usize>,
}

/// A sample that a reader handed over.
#[derive(Clone, Debug)]
pub struct ViewedSample {
    /// Its writer.
    pub writer: Guid,
    /// The low 32 bits of its number.
    pub sequence: u32,
    /// Its instance.
    pub instance: KeyHash,
    /// Its reception, in nanoseconds since 1970.
    pub log_time_ns: u64,
    /// The serialized sample; `None` for the end of the instance.
    pub value: Option<Payload>,
}

impl Switchboard {
    /// One without channels and clients.
    pub fn new(options: SwitchboardOptions) -> Switchboard {
        let bulletin = Bulletin {
            name: options.name.clone(),
            session_id: options.session_id.clone(),
            channels: BTreeMap::new(),
            remarks: BTreeMap::new(),
            remark_versions: BTreeMap::new(),
            version: 0,
            channels_version: 0,
            cleared: 0,
        };
        Switchboard {
            options,
            bulletin,
            clients: BTreeMap::new(),
            latched: Latched::default(),
            next_id: 1,
            wishes: 0,
            past: ViewSummary::default(),
        }
    }

    /// A topic whose type is known is there from now on; returns the channel's number.
    pub fn create_channel(
        &mut self,
        topic: &str,
        type_name: &str,
        schema: Arc<TypeSchema>,
        limits: DecoderLimits,
    ) -> u64 {
        let channel = ViewedChannel {
            shown: shown_topic(topic),
            topic: topic.to_owned(),
            type_name: type_name.to_owned(),
            schema,
            limits,
            subscribers: BTreeSet::new(),
            writers: HashMap::new(),
            strangers: HashSet::new(),
            latched: HashSet::new(),
        };
        if let Some(why) = channel.limits.of_type() {
            let text = format!("viewers do not all read samples of {}: {why}", channel.shown);
            self.bulletin.set_remark(&remark_name(&channel.shown, "decoding"), text);
        }
        let id = self.take_id();
        self.bulletin.channels.insert(id, channel);
        self.bulletin.channels_version = self.bulletin.take_version();
        id
    }

    /// The channel is there no longer. Clients still get what waits of it.
    pub fn delete_channel(&mut self, id: u64) {
        let Some(channel) = self.bulletin.channels.remove(&id) else { return };
        self.bulletin.channels_version = self.bulletin.take_version();
        self.bulletin.clear_remark(&remark_name(&channel.shown, "decoding"));
        channel.latched.iter().for_each(|writer| self.latched.forget(*writer));
        for client in channel.subscribers {
            if let Some(state) = self.clients.get_mut(&client) {
                state.end_channel(id);
            }
        }
    }

    /// Tells the writers that a channel has now. What a writer kept for late readers goes with it.
    pub fn set_writers(&mut self, id: u64, writers: HashMap<Guid, ChannelWriter>) {
        let Some(channel) = self.bulletin.channels.get_mut(&id) else { return };
        for gone in channel.writers.keys().filter(|writer| !writers.contains_key(*writer)) {
            if channel.latched.remove(gone) {
                self.latched.forget(*gone);
            }
        }
        channel.writers = writers;
    }

    /// Tells the writers whose samples a channel gets and does not show, as its definition of the type is none of theirs.
    pub fn set_strangers(&mut self, id: u64, writers: HashSet<Guid>) {
        let Some(channel) = self.bulletin.channels.get_mut(&id) else { return };
        for stranger in &writers {
            if channel.latched.remove(stranger) {
                self.latched.forget(*stranger);
            }
        }
        channel.strangers = writers;
    }

    /// Grows with each change of what clients want.
    pub fn wishes(&self) -> u64 {
        self.wishes
    }

    /// Whether a client wants a channel.
    pub fn has_subscribers(&self, id: u64) -> bool {
        self.bulletin.channels.get(&id).is_some_and(|channel| !channel.subscribers.is_empty())
    }

    /// Sets what clients are told of a topic, in place of an earlier remark of this kind; `None` takes it back. Returns whether that is
    /// new.
    pub fn remark(&mut self, shown: &str, kind: &str, text: Option<String>) -> bool {
        let name = remark_name(shown, kind);
        match text {
            Some(text) => self.bulletin.set_remark(&name, text),
            None => self.bulletin.clear_remark(&name),
        }
    }

    /// Takes a sample from the reader that asks for `demand`.
    pub fn handle_sample(&mut self, id: u64, demand: &Demand, sample: &ViewedSample) {
        let Some(channel) = self.bulletin.channels.get_mut(&id) else { return };
        if channel.strangers.contains(&sample.writer) {
            return;
        }
        let writer = channel.writers.get(&sample.writer);
        // Another reader, which asks for less, may match the writer as well.
        if writer.is_some_and(|writer| writer.demand != *demand) {
            return;
        }
        let Some(payload) = &sample.value else {
            self.latched.end(sample.writer, sample.instance);
            return;
        };
        // A writer that is not announced yet offers what it was matched for.
        let kept = writer.map_or(demand.is_durable.then_some(usize::MAX), |writer| writer.kept);
        let depth = kept.map_or(0, |kept| kept.min(self.options.latched_depth));
        let mut is_kept = true;
        if depth > 0 {
            channel.latched.insert(sample.writer);
            let kept = Kept {
                sequence: sample.sequence,
                log_time_ns: sample.log_time_ns,
                publish_time_ns: sample.log_time_ns,
                payload: payload.clone(),
            };
            is_kept = self.latched.keep(sample.writer, sample.instance, depth, kept);
        }
        for client in &channel.subscribers {
            if let Some(state) = self.clients.get_mut(client) {
                state.offer(id, sample.log_time_ns, payload);
            }
        }
        let unread = channel.limits.of_sample(payload).filter(|_| channel.limits.of_type().is_none());
        if let Some(why) = unread {
            let text = format!("viewers do not all read samples of {}: {why}", channel.shown);
            let name = remark_name(&channel.shown, "decoding");
            self.bulletin.set_remark(&name, text);
        }
        if !is_kept {
            let text = "there is no room to keep all samples for clients that come later: 64 MiB".to_owned();
            self.bulletin.set_remark(LATCHED, text);
        }
    }

    /// A client has connected; returns its number.
    pub fn create_client(&mut self, address: SocketAddr) -> u64 {
        let id = self.take_id();
        self.clients.insert(id, ClientState::new(address, self.options.client_bytes_max));
        self.past.clients += 1;
        id
    }

    /// A client has gone. Returns how many samples it was too slow for.
    pub fn delete_client(&mut self, id: u64) -> u64 {
        let Some(state) = self.clients.remove(&id) else { return 0 };
        self.wishes += 1;
        for channel in state.channels() {
            if let Some(channel) = self.bulletin.channels.get_mut(&channel) {
                channel.subscribers.remove(&id);
            }
        }
        self.past.samples += state.sent;
        self.past.dropped += state.queue.dropped();
        state.queue.dropped()
    }

    /// Takes a message in text.
    pub fn handle_text(&mut self, client: u64, text: &str) {
        match ClientMessage::parse(text) {
            Ok(ClientMessage::Subscribe { subscriptions }) => {
                subscriptions.into_iter().for_each(|one| self.subscribe(client, one));
            }
            Ok(ClientMessage::Unsubscribe { subscription_ids }) => {
                subscription_ids.into_iter().for_each(|number| self.unsubscribe(client, number));
            }
            Ok(ClientMessage::Unoffered) => self.complain(client, UNOFFERED),
            Err(why) => self.complain(client, &why),
        }
    }

    /// Takes a message in bytes: clients of a view have nothing to say in them.
    pub fn handle_binary(&mut self, client: u64) {
        self.complain(client, UNOFFERED);
    }

    /// The next frame for a client.
    pub fn poll_outgoing(&mut self, now: Instant, client: u64) -> Option<Outgoing> {
        self.clients.get_mut(&client)?.poll_outgoing(now, &self.bulletin)
    }

    /// Grows with each change of channels and remarks.
    pub fn version(&self) -> u64 {
        self.bulletin.version
    }

    /// The counts so far.
    pub fn summary(&self) -> ViewSummary {
        let mut summary = self.past.clone();
        for state in self.clients.values() {
            summary.samples += state.sent;
            summary.dropped += state.queue.dropped();
        }
        summary
    }

    /// Each client that is there, with its address, the bytes that wait for it and the samples that it was too slow for.
    pub fn backlogs(&self) -> impl Iterator<Item = (u64, SocketAddr, usize, u64)> {
        let clients = self.clients.iter();
        clients.map(|(id, state)| (*id, state.address, state.queue.bytes(), state.queue.dropped()))
    }

    fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    fn subscribe(&mut self, client: u64, requested: RequestedSubscription) {
        let RequestedSubscription { id: number, channel_id } = requested;
        let Some(state) = self.clients.get_mut(&client) else { return };
        let Some(channel) = self.bulletin.channels.get_mut(&channel_id) else {
            return state.complain(&format!("channel {channel_id} is not there"));
        };
        if let Err(why) = state.subscribe(number, channel_id) {
            return state.complain(&why);
        }
        channel.subscribers.insert(client);
        self.wishes += 1;
        let mut kept = self.latched.samples_of(|writer| channel.latched.contains(&writer));
        kept.sort_by_key(|(_, sample)| sample.log_time_ns);
        for (_, sample) in kept {
            state.offer(channel_id, sample.log_time_ns, &sample.payload);
        }
    }

    fn unsubscribe(&mut self, client: u64, number: u32) {
        let Some(state) = self.clients.get_mut(&client) else { return };
        self.wishes += 1;
        match state.unsubscribe(number) {
            Some(channel) => {
                if let Some(channel) = self.bulletin.channels.get_mut(&channel) {
                    channel.subscribers.remove(&client);
                }
            }
            // Its channel may have gone at the same time.
            None => state.queue.clear(number),
        }
    }

    fn complain(&mut self, client: u64, text: &str) {
        if let Some(state) = self.clients.get_mut(&client) {
            state.complain(text);
        }
    }
}

impl Bulletin {
    /// The first message to a client.
    pub(crate) fn greeting(&self) -> String {
        let metadata = BTreeMap::from([("server", concat!("thalweg ", env!("CARGO_PKG_VERSION")))]);
        let (name, session_id) = (self.name.as_str(), self.session_id.as_str());
        ServerMessage::ServerInfo { name, capabilities: &[], metadata, session_id }.to_text()
    }

    pub(crate) fn channels_version(&self) -> u64 {
        self.channels_version
    }

    pub(crate) fn cleared(&self) -> u64 {
        self.cleared
    }

    pub(crate) fn has(&self, channel: u64) -> bool {
        self.channels.contains_key(&channel)
    }

    /// Channels that are not among `told`, as one message, with their numbers; some of them where they are many.
    pub(crate) fn advertisement(&self, told: &BTreeSet<u64>) -> Option<(String, Vec<u64>)> {
        let (mut channels, mut bytes) = (Vec::new(), 0);
        for (id, channel) in self.channels.iter().filter(|(id, _)| !told.contains(*id)) {
            if bytes > ADVERTISEMENT_BYTES || channels.len() == ADVERTISED_MAX {
                break;
            }
            bytes += channel.schema.text.len();
            channels.push(channel.to_advertised(*id));
        }
        let ids: Vec<u64> = channels.iter().map(|channel| channel.id).collect();
        (!ids.is_empty()).then(|| (ServerMessage::Advertise { channels }.to_text(), ids))
    }

    pub(crate) fn has_remark(&self, name: &str) -> bool {
        self.remark_versions.contains_key(name)
    }

    /// The first remark that is newer than a version: its own version, its name and its text.
    pub(crate) fn remark_after(&self, version: u64) -> Option<(u64, &str, &str)> {
        let (version, (name, text)) = self.remarks.range(version + 1..).next()?;
        Some((*version, name, text))
    }

    fn take_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn set_remark(&mut self, name: &str, text: String) -> bool {
        let before = self.remark_versions.get(name).copied();
        if before.and_then(|version| self.remarks.get(&version)).is_some_and(|(_, told)| *told == text) {
            return false;
        }
        before.and_then(|version| self.remarks.remove(&version));
        let version = self.take_version();
        self.remark_versions.insert(name.to_owned(), version);
        self.remarks.insert(version, (name.to_owned(), text));
        true
    }

    fn clear_remark(&mut self, name: &str) -> bool {
        let Some(version) = self.remark_versions.remove(name) else { return false };
        self.remarks.remove(&version);
        self.cleared = self.take_version();
        true
    }
}

impl ViewedChannel {
    fn to_advertised(&self, id: u64) -> AdvertisedChannel<'_> {
        AdvertisedChannel {
            id,
            topic: &self.shown,
            encoding: CDR,
            schema_name: &self.schema.name,
            schema_encoding: &self.schema.encoding,
            schema: &self.schema.text,
            metadata: BTreeMap::from([
                ("thalweg.topic", self.topic.as_str()),
                ("thalweg.type", self.type_name.as_str()),
            ]),
        }
    }
}

/// The name of a remark on a topic.
fn remark_name(shown: &str, kind: &str) -> String {
    format!("{kind} {shown}")
}

const UNOFFERED: &str = "a view shows topics and takes nothing: clients may subscribe and unsubscribe";
const LATCHED: &str = "latched";
/// Channels in one message, as in Foxglove's own servers.
const ADVERTISED_MAX: usize = 100;
/// Bytes of definitions after which a message has enough.
const ADVERTISEMENT_BYTES: usize = 1 << 20;
