//! What a file tells of a writer: a channel with its metadata.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg::types::Keyed;

use crate::qos::RecordedQos;
use crate::schema::{OMGIDL, TypeSchema, shown_topic, wire_topic};

/// The channel of notices that an instance ended, as JSON of an [`InstanceEnd`](crate::read::InstanceEnd), in files that have it: other
/// programs refuse one whose channels are not encoded alike, so that notices are written as
/// [private records](crate::files::RecordingFiles::write_end).
pub const INSTANCES: &str = "thalweg/instances";

/// The encoding of samples.
pub const CDR: &str = "cdr";

/// A writer of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedWriter {
    /// The topic's name on the wire, such as `rt/scan`.
    pub topic: String,
    /// The type's name on the wire.
    pub type_name: String,
    /// Whether the topic has instances.
    pub keyed: Keyed,
    /// What the writer offered.
    pub qos: RecordedQos,
    /// Its GUID; empty in files of others.
    pub writer: String,
    /// Its type, where anybody described it.
    pub schema: Option<Arc<TypeSchema>>,
}

const TOPIC: &str = "thalweg.topic";
const TYPE_NAME: &str = "thalweg.type";
const KEYED: &str = "thalweg.keyed";
const QOS: &str = "thalweg.qos";
const WRITER: &str = "thalweg.writer";
const PROFILES: &str = "offered_qos_profiles";

impl RecordedWriter {
    /// The channel's name: as ROS 2 shows the topic.
    pub fn channel_name(&self) -> String {
        shown_topic(&self.topic)
    }

    /// What is the same for this writer in all files: its GUID, and in files of others the number of its channel.
    pub fn key(&self, channel: u16) -> String {
        if self.writer.is_empty() {
            format!("{} {channel}", self.topic)
        } else {
            format!("{} {}", self.topic, self.writer)
        }
    }

    /// The channel's metadata.
    pub fn to_metadata(&self) -> BTreeMap<String, String> {
        let qos = serde_json::to_string(&self.qos).unwrap_or_default();
        let entries = [
            (TOPIC, self.topic.clone()),
            (TYPE_NAME, self.type_name.clone()),
            (KEYED, (self.keyed == Keyed::Yes).to_string()),
            (QOS, qos),
            (WRITER, self.writer.clone()),
            (PROFILES, self.qos.to_profiles()),
        ];
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The writer of a channel, of ours or of rosbag2.
    ///
    /// # Errors
    /// Why samples of the channel cannot be written to a topic.
    pub fn of_channel(
        name: &str,
        message_encoding: &str,
        metadata: &BTreeMap<String, String>,
        schema: Option<Arc<TypeSchema>>,
    ) -> Result<RecordedWriter, String> {
        if message_encoding != CDR {
            return Err(format!("its messages are {message_encoding:?}, not {CDR:?}"));
        }
        let qos = match (metadata.get(QOS), metadata.get(PROFILES)) {
            (Some(own), _) => {
                serde_json::from_str(own).map_err(|error| format!("its QoS is not understood: {error}"))?
            }
            (None, Some(profiles)) => RecordedQos::from_profiles(profiles),
            (None, None) => RecordedQos::from_profiles(""),
        };
        let type_name = match (metadata.get(TYPE_NAME), &schema) {
            (Some(own), _) => own.clone(),
            (None, Some(schema)) => schema.wire_type_name(),
            (None, None) => return Err("it has neither a schema nor the name of a type".to_owned()),
        };
        let keyed = match (metadata.get(KEYED), &schema) {
            (Some(own), _) => own == "true",
            (None, Some(schema)) if schema.encoding == OMGIDL => {
                schema.to_type()?.is_some_and(|of| match of.resolved() {
                    thalweg::Type::Structure(structure) => structure.is_keyed(),
                    thalweg::Type::Union(union) => union.is_keyed,
                    _ => false,
                })
            }
            (None, _) => false,
        };
        let is_ros = schema.as_ref().is_none_or(|schema| schema.encoding != OMGIDL);
        let topic = metadata.get(TOPIC).cloned();
        // Without an encoding, it is the name of a type that nobody describes.
        let schema = schema.filter(|schema| !schema.encoding.is_empty());
        Ok(RecordedWriter {
            topic: topic.unwrap_or_else(|| if is_ros { wire_topic(name) } else { name.to_owned() }),
            type_name,
            keyed: if keyed { Keyed::Yes } else { Keyed::No },
            qos,
            writer: metadata.get(WRITER).cloned().unwrap_or_default(),
            schema,
        })
    }
}
