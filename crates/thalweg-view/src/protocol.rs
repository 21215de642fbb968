//! Messages of the Foxglove WebSocket protocol: JSON in text frames, samples in binary ones.
//!
//! Source: `docs/spec.md` of github.com/foxglove/ws-protocol, and the messages of Foxglove's SDK 0.30.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Names of the protocol that clients ask for, the preferred one first: that of Foxglove, and of Lichtblick since 2025, and the one that
/// both had before. What a view says is the same in both.
pub const SUBPROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];

/// What a view says in text.
#[derive(Debug, Serialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ServerMessage<'a> {
    /// The first message.
    ServerInfo {
        /// Shown as the name of the connection.
        name: &'a str,
        /// What clients may ask for beyond channels: nothing.
        capabilities: &'a [&'a str],
        /// What serves.
        metadata: BTreeMap<&'a str, &'a str>,
        /// Tells this run of the view from others.
        session_id: &'a str,
    },
    /// Channels that are there from now on.
    Advertise {
        /// The channels.
        channels: Vec<AdvertisedChannel<'a>>,
    },
    /// Channels that are there no longer.
    Unadvertise {
        /// Their numbers.
        channel_ids: Vec<u64>,
    },
    /// A remark for the user, in place of an earlier one of the same name.
    Status {
        /// How bad it is.
        level: StatusLevel,
        /// The remark.
        message: &'a str,
        /// Its name, by which it can be taken back.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
    },
    /// Remarks that hold no longer.
    RemoveStatus {
        /// Their names.
        status_ids: Vec<&'a str>,
    },
}

/// How bad a remark is, as a number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "u8")]
pub enum StatusLevel {
    /// Something does not work as one would expect.
    Warning,
    /// Something was refused.
    Error,
}

impl From<StatusLevel> for u8 {
    fn from(level: StatusLevel) -> u8 {
        match level {
            StatusLevel::Warning => 1,
            StatusLevel::Error => 2,
        }
    }
}

/// A channel as clients hear of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdvertisedChannel<'a> {
    /// Its number.
    pub id: u64,
    /// The name of the topic, as ROS 2 shows it.
    pub topic: &'a str,
    /// The encoding of the samples.
    pub encoding: &'a str,
    /// The name of the type in the schema.
    pub schema_name: &'a str,
    /// The language of the schema: `ros2msg` or `omgidl`.
    pub schema_encoding: &'a str,
    /// The definition of the type.
    pub schema: &'a str,
    /// Names of topic and type on the wire.
    pub metadata: BTreeMap<&'a str, &'a str>,
}

impl ServerMessage<'_> {
    /// The message as the text of a frame.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a message has nothing that JSON has not")
    }
}

/// What a client says in text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ClientMessage {
    /// It wants samples of channels.
    Subscribe {
        /// The channels, with a number for each that the client chooses.
        subscriptions: Vec<RequestedSubscription>,
    },
    /// It wants no more of them.
    Unsubscribe {
        /// The numbers that it chose.
        subscription_ids: Vec<u32>,
    },
    /// Something that needs a capability which a view has not.
    #[serde(other)]
    Unoffered,
}

/// A channel that a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedSubscription {
    /// The number that its samples bear.
    pub id: u32,
    /// The channel's number.
    pub channel_id: u64,
}

impl ClientMessage {
    /// Reads the text of a frame.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<ClientMessage, String> {
        serde_json::from_str(text).map_err(|error| format!("the message is not understood: {error}"))
    }
}

/// The bytes before a sample in a binary frame: opcode, subscription and reception in nanoseconds since 1970.
pub fn sample_head(subscription: u32, log_time_ns: u64) -> [u8; SAMPLE_HEAD_BYTES] {
    let mut head = [0; SAMPLE_HEAD_BYTES];
    head[0] = MESSAGE_DATA;
    head[1..5].copy_from_slice(&subscription.to_le_bytes());
    head[5..].copy_from_slice(&log_time_ns.to_le_bytes());
    head
}

/// Bytes before a sample.
pub const SAMPLE_HEAD_BYTES: usize = 13;
/// The opcode of a sample.
const MESSAGE_DATA: u8 = 1;
