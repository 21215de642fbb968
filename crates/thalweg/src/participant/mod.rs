//! The entry point of the API: a participant of a domain.

mod announcement;
mod builder;
mod histories;
mod listening;
mod process;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thalweg_rtps::discovery::Known;
use thalweg_rtps::discovery::endpoint_data::{PublicationData, SubscriptionData};
use thalweg_rtps::discovery::groups::{Groups, GroupsError};
use thalweg_rtps::discovery::participant_data::ParticipantData;
use thalweg_rtps::participant::{IgnoredParticipant, KeyOf, Participant, ParticipantCounters, match_by_name};
use thalweg_rtps::qos::MatchResult;
use thalweg_rtps::types::{Guid, GuidPrefix, Keyed};
use thalweg_transport::clock;
use thalweg_transport::udp::{Notice, ReceiveCounts, SendCounts, UdpConfig};

use thalweg_types::Type;
use thalweg_types::type_object::LibraryError;

use crate::discovery::BuiltinTopicData;
use crate::explain::{self, ParticipantExplanation, TopicExplanation};
use crate::figures::ParticipantFigureSource;
use crate::runtime::{Deadline, Runtime, on_io_thread};
use crate::status::InconsistentTopic;
use crate::surroundings::Survey;
use crate::topic::{TopicDescription, TopicKeys};
use crate::{
    Configuration, DataReader, DataReaderBuilder, DataWriterBuilder, Error, ErrorKind, Publisher, PublisherQos, Raw,
    Subscriber, SubscriberQos, Topic, TopicType,
};
use announcement::check_announcement;
pub use builder::DomainParticipantBuilder;
pub use process::ProcessDescription;

/// A member of a domain (DDS 1.4 §2.2.2.2.1): owns the sockets and the I/O thread, discovers the others.
///
/// It leaves the domain, telling its peers, when it and all publishers, subscribers, writers, readers, flow controllers and builders made
/// from it are dropped, and no callback of theirs runs.
pub struct DomainParticipant {
    runtime: Arc<Runtime>,
    udp: UdpConfig,
    notices: Vec<Notice>,
}

impl DomainParticipant {
    /// Settings of a participant of `domain_id` (0 to 232), all at their defaults.
    pub fn builder(domain_id: u32) -> DomainParticipantBuilder {
        DomainParticipantBuilder::new(domain_id)
    }

    /// A participant with default settings.
    ///
    /// # Errors
    /// As [`DomainParticipantBuilder::create`].
    pub fn new(domain_id: u32) -> Result<DomainParticipant, Error> {
        DomainParticipant::builder(domain_id).create()
    }

    /// Settings of a participant of the domain that the environment or the file of `THALWEG_CONFIG` names, 0 unless set; see
    /// [`crate::configuration`].
    ///
    /// # Errors
    /// As [`Configuration::from_environment`].
    pub fn configured() -> Result<DomainParticipantBuilder, Error> {
        let configuration = Configuration::from_environment()?;
        Ok(DomainParticipant::builder(configuration.domain()).configuration(configuration))
    }

    /// A topic whose samples are values of `T`.
    pub fn create_topic<T: TopicType>(&self, name: &str) -> Topic<T> {
        Topic::typed(name)
    }

    /// A topic whose samples the application serializes itself, for tools and bridges. `key_of` tells the instance of a
    /// serialized sample or key; without it, writers must name the instance and readers rely on the hashes that writers send.
    ///
    /// `key_of` may take its time: each reader of the topic calls it on a thread of its own, and only the samples of that
    /// reader wait, in order and unacknowledged. A panic in it counts as a sample whose key cannot be told. Writers call it
    /// in `write`, where a panic is the caller's.
    pub fn create_raw_topic(&self, name: &str, type_name: &str, keyed: Keyed, key_of: Option<KeyOf>) -> Topic<Raw> {
        Topic::from_description(TopicDescription {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            keyed,
            keys: key_of.map_or(TopicKeys::Wire, TopicKeys::Application),
            described: None,
        })
    }

    /// A publisher, to create writers with.
    pub fn create_publisher(&self, qos: PublisherQos) -> Publisher {
        Publisher::new(Arc::clone(&self.runtime), qos)
    }

    /// A subscriber, to create readers with.
    pub fn create_subscriber(&self, qos: SubscriberQos) -> Subscriber {
        Subscriber::new(Arc::clone(&self.runtime), qos)
    }

    /// A writer of a publisher with default QoS.
    ///
    /// # Errors
    /// As [`Publisher::create_writer`].
    pub fn create_writer<T>(
        &self,
        topic: &Topic<T>,
        qos: crate::qos::WriterQos,
    ) -> Result<crate::DataWriter<T>, Error> {
        self.create_publisher(PublisherQos::default()).create_writer(topic, qos)
    }

    /// A reader of a subscriber with default QoS.
    ///
    /// # Errors
    /// As [`Subscriber::create_reader`].
    pub fn create_reader<T>(
        &self,
        topic: &Topic<T>,
        qos: crate::qos::ReaderQos,
    ) -> Result<crate::DataReader<T>, Error> {
        self.create_subscriber(SubscriberQos::default()).create_reader(topic, qos)
    }

    /// As [`Publisher::writer_builder`], for a publisher with default QoS.
    pub fn writer_builder<T>(&self, topic: &Topic<T>) -> DataWriterBuilder<T> {
        self.create_publisher(PublisherQos::default()).writer_builder(topic)
    }

    /// As [`Subscriber::reader_builder`], for a subscriber with default QoS.
    pub fn reader_builder<T>(&self, topic: &Topic<T>) -> DataReaderBuilder<T> {
        self.create_subscriber(SubscriberQos::default()).reader_builder(topic)
    }

    /// Gives a sign of life of the application for all writers of this participant whose LIVELINESS is MANUAL_BY_PARTICIPANT (DDS 1.4
    /// §2.2.2.2.1.18).
    pub fn assert_liveliness(&self) {
        self.runtime.command(|now, participant| participant.assert_liveliness(now));
    }

    pub(crate) fn udp(&self) -> &UdpConfig {
        &self.udp
    }

    /// Starts a survey in the background, to find out why no participant is discovered: the interfaces in use, whether multicast works there, and
    /// the participants in other domains and with other tags. Most participants are heard within six seconds, some of other
    /// vendors within thirty. It opens sockets of its own and sends nothing that reaches another participant.
    pub fn survey(&self) -> Survey {
        Survey::start(self.udp.clone(), self.guid_prefix())
    }

    pub(crate) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// The domain.
    pub fn domain_id(&self) -> u32 {
        self.udp.domain_id
    }

    /// First half of the GUIDs of everything in this participant.
    pub fn guid_prefix(&self) -> GuidPrefix {
        self.runtime.view(Participant::guid_prefix)
    }

    /// Restrictions under which the participant works: a small receive buffer, no multicast. Logged at creation
    /// as well.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The other participants known now, as they announced themselves.
    pub fn discovered_participants(&self) -> Vec<ParticipantData> {
        self.runtime
            .view(|participant| participant.participants().map(|known| ParticipantData::clone(&known.data)).collect())
    }

    /// The writers of the domain known now, this participant's included, and which local readers each is matched with.
    pub fn publications(&self) -> Vec<Known<PublicationData>> {
        self.runtime.view(|participant| participant.publications().cloned().collect())
    }

    /// The readers of the domain known now, this participant's included, and which local writers each is matched with.
    pub fn subscriptions(&self) -> Vec<Known<SubscriptionData>> {
        self.runtime.view(|participant| participant.subscriptions().cloned().collect())
    }

    /// The type that an endpoint of another participant announces: `information` is its TYPE_INFORMATION. Objects that are not here
    /// are asked for; the participant has `patience` to answer.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when it does not answer, [`ErrorKind::Unsupported`] for a type that contains itself or is too large.
    pub fn type_of(&self, participant: GuidPrefix, information: &[u8], patience: Duration) -> Result<Type, Error> {
        const OPERATION: &str = "type_of";
        let state = self.runtime.state();
        let deadline = Deadline::after(patience);
        let mut is_first = true;
        loop {
            match state.types.type_of(participant, information) {
                Ok(found) => return Ok(found),
                // Within an inline listener no answer can come.
                Err(LibraryError::Missing(missing)) if deadline.has_passed() || on_io_thread() => {
                    let cause = format!("timed out: {participant} gave none of {} type objects", missing.len());
                    let error = Error::new(ErrorKind::Timeout, OPERATION, cause);
                    return Err(error.advise("give the IDL or .msg that defines the type"));
                }
                Err(LibraryError::Missing(missing)) => {
                    if std::mem::take(&mut is_first) {
                        state.types.ask_again(participant, &missing);
                    }
                    state.alarm.wake();
                    std::thread::sleep(TYPE_LOOK_PERIOD);
                }
                Err(error) => return Err(Error::new(ErrorKind::Unsupported, OPERATION, format!("failed: {error}"))),
            }
        }
    }

    /// Compares a writer with a reader as their participants do before they match: types, QoS, partitions. Objects of types that are not
    /// here are asked for; their participants have `patience` to answer, and then the types' names decide, but for a reader that forces
    /// type validation.
    pub fn compare(&self, writer: &PublicationData, reader: &SubscriptionData, patience: Duration) -> MatchResult {
        let deadline = Deadline::after(patience);
        loop {
            if let Some(result) = self.runtime.view(|participant| participant.compare(writer, reader)) {
                return result;
            }
            if deadline.has_passed() || on_io_thread() {
                return match_by_name(writer, reader, "its objects were not given in time");
            }
            self.runtime.state().alarm.wake();
            std::thread::sleep(TYPE_LOOK_PERIOD);
        }
    }

    /// Takes no notice of another participant any more, until this one ends (DDS 1.4 §2.2.2.2.1.14).
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] for this participant itself: its readers leave out its own writers by
    /// [`DataReaderBuilder::ignore_own_publications`].
    pub fn ignore_participant(&self, prefix: GuidPrefix) -> Result<(), Error> {
        if prefix == self.guid_prefix() {
            let cause = "failed: this is the participant itself";
            let error = Error::new(ErrorKind::BadParameter, "ignore_participant", cause);
            return Err(error.advise("create readers with ignore_own_publications to leave out its own writers"));
        }
        self.runtime.command(|now, participant| participant.ignore_participant(now, prefix));
        Ok(())
    }

    /// Takes no notice of any writer or reader on a topic any more, until this participant ends; its own are matched with none there
    /// (DDS 1.4 §2.2.2.2.1.15).
    pub fn ignore_topic(&self, name: &str) {
        self.runtime.command(|now, participant| participant.ignore_topic(now, name));
    }

    /// Takes no notice of a writer any more, until this participant ends: none of its readers is matched with it (DDS 1.4
    /// §2.2.2.2.1.16). One of its own is parted from its own readers only.
    pub fn ignore_publication(&self, writer: Guid) {
        self.runtime.command(|now, participant| participant.ignore_publication(now, writer));
    }

    /// Takes no notice of a reader any more, until this participant ends: none of its writers is matched with it (DDS 1.4
    /// §2.2.2.2.1.17). One of its own is parted from its own writers only.
    pub fn ignore_subscription(&self, reader: Guid) {
        self.runtime.command(|now, participant| participant.ignore_subscription(now, reader));
    }

    /// INCONSISTENT_TOPIC of a topic: endpoints of other participants that use its name with another type (DDS 1.4 §2.2.4.1); its
    /// change starts from zero again. A [status listener](DomainParticipantBuilder::on_status) of the participant is told first.
    pub fn inconsistent_topic<T>(&self, topic: &Topic<T>) -> InconsistentTopic {
        self.runtime.state().topics.tell(topic.name())
    }

    /// A reader of the built-in topic of `D` (DDS 1.4 §2.2.5): [`ParticipantData`], [`TopicData`](crate::discovery::TopicData),
    /// [`PublicationData`] or [`SubscriptionData`] of other participants. Each of them is an instance, which gets a sample when it is
    /// found and when it changes, and is not alive once it is gone: `NotAliveDisposed` where its owner said so, `NotAliveNoWriters`
    /// where its lease ended. [`Sample::announced`](crate::Sample::announced) reads the data. The instance of a participant or endpoint
    /// is its GUID.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when an endpoint of this participant uses the topic's name with another type.
    pub fn create_builtin_reader<D: BuiltinTopicData>(&self) -> Result<DataReader<D>, Error> {
        Subscriber::new(Arc::clone(&self.runtime), SubscriberQos::default()).create_builtin()
    }

    /// The communication groups of this participant; empty for the group `default`.
    pub fn groups(&self) -> Groups {
        self.runtime.view(|participant| participant.groups().clone())
    }

    /// Changes the communication groups: participants that share none any more are dropped, on both sides, and those that
    /// share one now are met.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] for names that cannot be announced, also because they are too long together with what the participant
    /// announces already (see [`DomainParticipantBuilder::user_data`]), or when the application's USER_DATA names groups. Then nothing
    /// changes.
    pub fn set_groups(&self, names: impl IntoIterator<Item = impl Into<String>>) -> Result<(), Error> {
        let groups = Groups::new(names).map_err(|error| bad_groups("set_groups", error))?;
        self.runtime.command(|now, participant| {
            let mut user_data = participant.config().user_data.clone();
            groups.add_to_user_data(&mut user_data).map_err(|error| bad_groups("set_groups", error))?;
            check_announcement("set_groups", participant.config(), &groups)?;
            participant.set_groups(now, groups);
            Ok(())
        })
    }

    /// The other participants that are ignored because of their communication groups, while they announce themselves.
    pub fn ignored_participants(&self) -> Vec<IgnoredParticipant> {
        self.runtime.view(|participant| participant.ignored_participants(clock::now()).cloned().collect())
    }

    /// The explanations of a topic's endpoints in all Thalweg participants of the domain: how its writers send, and which samples its readers received and did
    /// not hand over: those of other processes are asked and have `patience` to answer. Endpoints that did not answer in time are
    /// missing; compare [`DomainParticipant::publications`] and [`DomainParticipant::subscriptions`].
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] unless the participant is an [inspector](DomainParticipantBuilder::inspector).
    pub fn explain_topic(&self, topic: &str, patience: Duration) -> Result<TopicExplanation, Error> {
        explain::topic(&self.runtime, topic, patience)
    }

    /// Messages in the names of others that this participant refused, as `thalweg why` and `thalweg ls` show them.
    pub fn explain(&self) -> ParticipantExplanation {
        self.runtime.view(Participant::explain)
    }

    /// Reads the counts of the participant and its endpoints, also from other threads and after it has ended.
    pub fn figure_source(&self) -> ParticipantFigureSource {
        ParticipantFigureSource::new(self.runtime.state())
    }

    /// Counts of received messages that were refused or ignored.
    pub fn counters(&self) -> ParticipantCounters {
        self.runtime.view(Participant::counters)
    }

    /// Datagrams and bytes that the sockets sent; system calls and losses on this side.
    pub fn send_counts(&self) -> SendCounts {
        self.runtime.state().sender.counts()
    }

    /// Datagrams and bytes that the sockets received; system calls, and datagrams that the kernel dropped because a buffer was full.
    pub fn receive_counts(&self) -> ReceiveCounts {
        self.runtime.received()
    }
}

/// Interval at which objects of types are looked for that were asked for.
const TYPE_LOOK_PERIOD: Duration = Duration::from_millis(5);

fn bad_groups(operation: &'static str, error: GroupsError) -> Error {
    Error::new(ErrorKind::BadParameter, operation, format!("failed: {error}")).because(error)
}

impl fmt::Debug for DomainParticipant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DomainParticipant({}, domain {})", self.guid_prefix(), self.domain_id())
    }
}
