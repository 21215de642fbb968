//! One client: what it wants, what it was told, and what waits for it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use thalweg::Payload;

use crate::protocol::{SAMPLE_HEAD_BYTES, ServerMessage, StatusLevel, sample_head};
use crate::queue::{SampleQueue, WaitingSample};
use crate::switchboard::Bulletin;

/// What is to be sent to a client in one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// A message in text.
    Text(String),
    /// A sample and the bytes before it, as one binary message.
    Sample {
        /// Before the sample.
        head: [u8; SAMPLE_HEAD_BYTES],
        /// The serialized sample.
        payload: Payload,
    },
}

/// The state of one client. Channels and remarks are told by what it knows already, so that a client that reads nothing has no messages
/// waiting but its samples, which are bounded, and the newest complaints about its own ones.
pub struct ClientState {
    pub address: SocketAddr,
    pub queue: SampleQueue,
    subscriptions: Subscriptions,
    told: Told,
    complaints: VecDeque<String>,
    /// Samples that were handed over.
    pub sent: u64,
}

/// The channels that a client wants.
#[derive(Default)]
struct Subscriptions {
    by_channel: BTreeMap<u64, u32>,
    by_number: HashMap<u32, u64>,
    /// Those whose channel has gone, until their last samples have been handed over.
    ended: Vec<(u32, u64)>,
}

/// What a client was told.
#[derive(Default)]
struct Told {
    is_greeted: bool,
    /// The changes of channels that it knows.
    channels_version: u64,
    channels: BTreeSet<u64>,
    /// The newest remark that it knows, and the names of all.
    remark: u64,
    remarks: BTreeSet<String>,
    /// The remarks that were taken back.
    cleared: u64,
    dropped: u64,
    dropped_at: Option<Instant>,
}

impl ClientState {
    pub fn new(address: SocketAddr, bytes_max: usize) -> ClientState {
        ClientState {
            address,
            queue: SampleQueue::new(bytes_max),
            subscriptions: Subscriptions::default(),
            told: Told::default(),
            complaints: VecDeque::new(),
            sent: 0,
        }
    }

    /// Takes a channel under a number of the client's.
    ///
    /// # Errors
    /// Why the client cannot have it.
    pub fn subscribe(&mut self, number: u32, channel: u64) -> Result<(), String> {
        if self.subscriptions.by_channel.contains_key(&channel) {
            return Err(format!("channel {channel} is subscribed to already"));
        }
        let is_ended = self.subscriptions.ended.iter().any(|(ended, _)| *ended == number);
        if is_ended || self.subscriptions.by_number.contains_key(&number) {
            return Err(format!("the number {number} belongs to another subscription"));
        }
        self.subscriptions.by_channel.insert(channel, number);
        self.subscriptions.by_number.insert(number, channel);
        Ok(())
    }

    /// Gives a subscription up with what waits of it; returns its channel.
    pub fn unsubscribe(&mut self, number: u32) -> Option<u64> {
        let channel = self.subscriptions.by_number.remove(&number)?;
        self.subscriptions.by_channel.remove(&channel);
        self.queue.clear(number);
        Some(channel)
    }

    /// The channels that it wants.
    pub fn channels(&self) -> impl Iterator<Item = u64> {
        self.subscriptions.by_channel.keys().copied()
    }

    /// A channel has gone: what waits of it is still handed over.
    pub fn end_channel(&mut self, channel: u64) {
        if let Some(number) = self.subscriptions.by_channel.remove(&channel) {
            self.subscriptions.by_number.remove(&number);
            self.subscriptions.ended.push((number, channel));
        }
    }

    /// Puts a sample of a channel behind the others, if the client wants it.
    pub fn offer(&mut self, channel: u64, log_time_ns: u64, payload: &Payload) {
        if let Some(number) = self.subscriptions.by_channel.get(&channel) {
            self.queue.push(WaitingSample { subscription: *number, log_time_ns, payload: payload.clone() });
        }
    }

    /// Complains about what the client sent; of many complaints, the newest wait.
    pub fn complain(&mut self, text: &str) {
        if self.complaints.len() == COMPLAINTS_MAX {
            self.complaints.pop_front();
        }
        let status = ServerMessage::Status { level: StatusLevel::Error, message: text, id: None };
        self.complaints.push_back(status.to_text());
    }

    /// The next frame: what is new of channels and remarks before samples.
    pub fn poll_outgoing(&mut self, now: Instant, bulletin: &Bulletin) -> Option<Outgoing> {
        if !std::mem::replace(&mut self.told.is_greeted, true) {
            return Some(Outgoing::Text(bulletin.greeting()));
        }
        if let Some(text) = self.poll_ended() {
            return Some(Outgoing::Text(text));
        }
        if let Some(text) = self.poll_channels(bulletin).or_else(|| self.poll_remarks(bulletin)) {
            return Some(Outgoing::Text(text));
        }
        if let Some(text) = self.complaints.pop_front().or_else(|| self.poll_dropped(now)) {
            return Some(Outgoing::Text(text));
        }
        let WaitingSample { subscription, log_time_ns, payload } = self.queue.pop()?;
        self.sent += 1;
        Some(Outgoing::Sample { head: sample_head(subscription, log_time_ns), payload })
    }

    /// Takes back channels that have gone, once their last samples were handed over.
    fn poll_ended(&mut self) -> Option<String> {
        let queue = &self.queue;
        let is_over = |(number, _): &(u32, u64)| !queue.has(*number);
        let over: Vec<u64> =
            self.subscriptions.ended.iter().filter(|ended| is_over(ended)).map(|(_, channel)| *channel).collect();
        self.subscriptions.ended.retain(|ended| !is_over(ended));
        self.take_back(over)
    }

    fn take_back(&mut self, channels: Vec<u64>) -> Option<String> {
        let channel_ids: Vec<u64> = channels.into_iter().filter(|id| self.told.channels.remove(id)).collect();
        (!channel_ids.is_empty()).then(|| ServerMessage::Unadvertise { channel_ids }.to_text())
    }

    /// The first change of channels that the client does not know.
    fn poll_channels(&mut self, bulletin: &Bulletin) -> Option<String> {
        if self.told.channels_version == bulletin.channels_version() {
            return None;
        }
        let (told, subscriptions) = (&self.told.channels, &self.subscriptions);
        let is_ending = |id: &u64| subscriptions.ended.iter().any(|(_, channel)| channel == id);
        let gone: Vec<u64> = told.iter().copied().filter(|id| !bulletin.has(*id) && !is_ending(id)).collect();
        if let Some(text) = self.take_back(gone) {
            return Some(text);
        }
        if let Some((text, ids)) = bulletin.advertisement(&self.told.channels) {
            self.told.channels.extend(ids);
            return Some(text);
        }
        self.told.channels_version = bulletin.channels_version();
        None
    }

    /// The first change of remarks that the client does not know.
    fn poll_remarks(&mut self, bulletin: &Bulletin) -> Option<String> {
        if std::mem::replace(&mut self.told.cleared, bulletin.cleared()) != bulletin.cleared() {
            let told = std::mem::take(&mut self.told.remarks);
            let (stale, valid): (Vec<String>, _) = told.into_iter().partition(|name| !bulletin.has_remark(name));
            self.told.remarks = valid.into_iter().collect();
            if !stale.is_empty() {
                let status_ids = stale.iter().map(String::as_str).collect();
                return Some(ServerMessage::RemoveStatus { status_ids }.to_text());
            }
        }
        let (version, name, text) = bulletin.remark_after(self.told.remark)?;
        self.told.remark = version;
        self.told.remarks.insert(name.to_owned());
        Some(ServerMessage::Status { level: StatusLevel::Warning, message: text, id: Some(name) }.to_text())
    }

    /// Tells how many samples it was too slow for, once a second.
    fn poll_dropped(&mut self, now: Instant) -> Option<String> {
        let dropped = self.queue.dropped();
        let is_due = self.told.dropped_at.is_none_or(|at| now.saturating_duration_since(at) >= DROPPED_PERIOD);
        if dropped == self.told.dropped || !is_due {
            return None;
        }
        (self.told.dropped, self.told.dropped_at) = (dropped, Some(now));
        let message = format!(
            "{dropped} samples were dropped, as they come faster than this client reads; subscribe to less, or raise --client-memory"
        );
        Some(ServerMessage::Status { level: StatusLevel::Warning, message: &message, id: Some(DROPPED) }.to_text())
    }
}

/// The name of the remark on dropped samples.
pub const DROPPED: &str = "dropped";
/// Complaints that wait for a client that sends nonsense and reads nothing.
const COMPLAINTS_MAX: usize = 16;
const DROPPED_PERIOD: Duration = Duration::from_secs(1);
