//! Participants, writers and readers as discovery knows them; and the built-in topics, by which they are read like any other data.

use std::sync::Arc;

use thalweg_rtps::participant::{BuiltinTopic, builtin_reader_qos};
use thalweg_rtps::qos::ReaderQos;
use thalweg_rtps::types::Keyed;

pub use crate::participant::ProcessDescription;
pub use thalweg_rtps::discovery::endpoint_data::{PublicationData, SubscriptionData};
pub use thalweg_rtps::discovery::groups::Groups;
pub use thalweg_rtps::discovery::participant_data::ParticipantData;
pub use thalweg_rtps::discovery::{DiscoveryLimits, Known};
pub use thalweg_rtps::participant::IgnoredParticipant;

use crate::topic::{TopicDescription, TopicKeys};
#[doc(hidden)]
pub use crate::type_store::LookupEnd;
use crate::{Error, ErrorKind, Sample};

/// A topic that writers or readers of other participants use, by its names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicData {
    /// Name of the topic.
    pub name: String,
    /// Name of its type.
    pub type_name: String,
    /// TOPIC_DATA, as the first endpoint that was found on the topic announces it.
    pub topic_data: Vec<u8>,
}

/// What a built-in topic tells (DDS 1.4 §2.2.5): [`ParticipantData`], [`TopicData`], [`PublicationData`] or [`SubscriptionData`]; see
/// [`DomainParticipant::create_builtin_reader`](crate::DomainParticipant::create_builtin_reader).
pub trait BuiltinTopicData: sealed::Announced {}

mod sealed {
    use thalweg_rtps::participant::BuiltinTopic;

    /// Data that are read from announcements.
    pub trait Announced: Sized {
        const TOPIC: BuiltinTopic;

        /// The data, or what was expected.
        fn read(payload: &[u8]) -> Result<Self, String>;
    }
}

macro_rules! announced {
    ($($data:ty: $topic:ident, $read:expr;)*) => {
        $(
            impl sealed::Announced for $data {
                const TOPIC: BuiltinTopic = BuiltinTopic::$topic;

                fn read(payload: &[u8]) -> Result<Self, String> {
                    $read(payload).map_err(|error| error.to_string())
                }
            }

            impl BuiltinTopicData for $data {}
        )*
    };
}

announced! {
    ParticipantData: Participant, ParticipantData::decode;
    PublicationData: Publication, PublicationData::decode;
    SubscriptionData: Subscription, SubscriptionData::decode;
}

impl sealed::Announced for TopicData {
    const TOPIC: BuiltinTopic = BuiltinTopic::Topic;

    fn read(payload: &[u8]) -> Result<TopicData, String> {
        let announced = PublicationData::decode(payload).map_err(|error| error.to_string())?;
        let topic_data = announced.qos.attached.topic.clone();
        Ok(TopicData { name: announced.topic_name, type_name: announced.type_name, topic_data })
    }
}

impl BuiltinTopicData for TopicData {}

/// The built-in topic of `D`, the names of it and its type, and the QoS of its readers.
pub(crate) fn builtin_topic<D: BuiltinTopicData>() -> (BuiltinTopic, Arc<TopicDescription>, Arc<ReaderQos>) {
    let (name, type_name) = match D::TOPIC {
        BuiltinTopic::Participant => ("DCPSParticipant", "ParticipantBuiltinTopicData"),
        BuiltinTopic::Topic => ("DCPSTopic", "TopicBuiltinTopicData"),
        BuiltinTopic::Publication => ("DCPSPublication", "PublicationBuiltinTopicData"),
        BuiltinTopic::Subscription => ("DCPSSubscription", "SubscriptionBuiltinTopicData"),
    };
    let description = TopicDescription {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        keyed: Keyed::Yes,
        keys: TopicKeys::Wire,
        described: None,
    };
    (D::TOPIC, Arc::new(description), Arc::new(builtin_reader_qos()))
}

impl<D: BuiltinTopicData> Sample<D> {
    /// What the participant, topic or endpoint announces; for one that is gone, what it announced last.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when it is gone and no sample of it was received.
    pub fn announced(&self) -> Result<D, Error> {
        if self.bytes().is_empty() {
            return Err(Error::new(
                ErrorKind::PreconditionNotMet,
                "announced",
                "found no data: it was never known here",
            ));
        }
        D::read(self.bytes())
            .map_err(|expected| Error::new(ErrorKind::Error, "announced", format!("cannot be read: {expected}")))
    }
}
