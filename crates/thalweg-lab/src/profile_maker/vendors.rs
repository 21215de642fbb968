//! The chosen settings in the files of other vendors, by their nearest means. What they have no setting for stands there as a comment.

use std::fmt::Display;
use std::time::Duration;

use super::files::Advice;
use crate::scenario::HistorySetting;
use crate::station::PackingMethod;

/// Settings of Cyclone DDS for `CYCLONEDDS_URI`.
pub(super) fn cyclone(advice: &Advice<'_>) -> String {
    let mut xml = XmlText::begin(
        advice,
        &["Cyclone DDS 11: CYCLONEDDS_URI=file:///path/to/this/file; its QoS stand in cyclonedds-qos.xml."],
    );
    xml.open("CycloneDDS");
    xml.open("Domain Id=\"any\"");
    xml.open("General");
    if let Some(bytes) = advice.chosen.way.sending.max_datagram_bytes {
        xml.set("MaxMessageSize", format_args!("{bytes} B"), "largest datagram that was measured");
        xml.set(
            "FragmentSize",
            format_args!("{} B", bytes - FRAGMENT_HEADERS),
            "a fragment of a sample with its headers fills one",
        );
    } else if let Some(limits) = advice.limits() {
        let bytes = limits.max_bytes.min(advice.datagram_bytes());
        xml.set(
            "MaxMessageSize",
            format_args!("{bytes} B"),
            "samples are collected up to this; smaller datagrams would end a batch early",
        );
    } else {
        xml.note("MaxMessageSize and FragmentSize as shipped: no limit of datagrams was chosen.");
    }
    xml.close();
    xml.open("Internal");
    if advice.is_reliable() {
        let period = advice.heartbeat_period().as_millis();
        xml.set("HeartbeatInterval", format_args!("{period} ms"), &advice.of_heartbeats());
    }
    xml.set(&format!("SocketReceiveBufferSize max=\"{RECEIVE_BUFFER} B\""), "", BUFFERS);
    xml.note("WriteBatch is deprecated; cyclonedds-qos.xml has the policy in its place.");
    xml.close();
    xml.close();
    if let Some(bucket) = advice.bucket() {
        xml.note(&format!(
            "Cyclone DDS has no flow controller: {} B in each {} us have to be kept by the program that writes.",
            bucket.bytes_per_token, bucket.period_us
        ));
    }
    xml.end()
}

/// QoS of Cyclone DDS for `dds_create_qos_provider`.
pub(super) fn cyclone_qos(advice: &Advice<'_>) -> String {
    let mut xml = XmlText::begin(
        advice,
        &["Cyclone DDS 11: dds_create_qos_provider(path, &provider), key \"Thalweg::Measured\"."],
    );
    xml.open("dds");
    xml.open("qos_library name=\"Thalweg\"");
    xml.open("qos_profile name=\"Measured\"");
    for entity in ["datawriter_qos", "datareader_qos"] {
        xml.open(entity);
        xml.standard_policies(advice);
        if entity == "datawriter_qos" {
            let batches = advice.limits().is_some();
            xml.note(&advice.of_method());
            if let Some(limits) = advice.limits() {
                xml.note(&format!(
                    "A batch leaves when it is full or by dds_write_flush; no setting lets it wait at most {} us: call it as often.",
                    limits.max_flush_delay_us
                ));
            }
            xml.open("writer_batching");
            xml.leaf("batch_updates", batches);
            xml.close();
        }
        xml.close();
    }
    xml.end()
}

/// Profiles of Fast DDS for `FASTDDS_DEFAULT_PROFILES_FILE`.
pub(super) fn fast_dds(advice: &Advice<'_>) -> String {
    let place =
        "Fast DDS 3: FASTDDS_DEFAULT_PROFILES_FILE=/path/to/this/file; programs that ask for profiles name measured_*.";
    let mut xml = XmlText::begin(advice, &[place]);
    xml.open("dds");
    xml.open("profiles xmlns=\"http://www.eprosima.com\"");
    xml.open("transport_descriptors");
    xml.open("transport_descriptor");
    xml.leaf("transport_id", "measured_udp");
    xml.leaf("type", "UDPv4");
    xml.set("sendBufferSize", SEND_BUFFER, BUFFERS);
    xml.set("receiveBufferSize", RECEIVE_BUFFER, BUFFERS);
    xml.set("maxMessageSize", advice.datagram_bytes(), advice.of_datagrams());
    xml.close();
    xml.close();
    xml.open("participant profile_name=\"measured_participant\" is_default_profile=\"true\"");
    xml.open("rtps");
    if let Some(bucket) = advice.bucket() {
        xml.note(&advice.of_method());
        xml.open("flow_controller_descriptor_list");
        xml.open("flow_controller_descriptor");
        xml.leaf("name", &bucket.name);
        xml.leaf("scheduler", "FIFO");
        xml.leaf("max_bytes_per_period", bucket.bytes_per_token);
        xml.leaf("period_ms", bucket.period_us.div_ceil(1_000));
        xml.close();
        xml.close();
    }
    xml.note("UDP alone, as it was measured: without this, processes of one host use shared memory.");
    xml.open("userTransports");
    xml.leaf("transport_id", "measured_udp");
    xml.close();
    xml.leaf("useBuiltinTransports", false);
    xml.close();
    xml.close();
    for (entity, name) in [("data_writer", "measured_writer"), ("data_reader", "measured_reader")] {
        xml.open(&format!("{entity} profile_name=\"{name}\" is_default_profile=\"true\""));
        xml.fast_dds_history(advice);
        xml.open("qos");
        xml.note(&advice.of_reliability());
        xml.open("reliability");
        xml.leaf("kind", if advice.is_reliable() { "RELIABLE" } else { "BEST_EFFORT" });
        if entity == "data_writer" && advice.is_reliable() {
            xml.time("max_blocking_time", advice.max_blocking());
        }
        xml.close();
        if entity == "data_writer" {
            xml.fast_dds_publish_mode(advice);
        }
        xml.close();
        if entity == "data_writer" && advice.is_reliable() {
            xml.note(&advice.of_heartbeats());
            xml.open("times");
            xml.time("heartbeat_period", advice.heartbeat_period());
            xml.close();
        }
        xml.close();
    }
    xml.end()
}

/// A profile of RTI Connext, in the order of its documentation.
pub(super) fn connext(advice: &Advice<'_>) -> String {
    let place = "RTI Connext 7: USER_QOS_PROFILES.xml in the working directory, or NDDS_QOS_PROFILES. It was not measured with Connext.";
    let mut xml = XmlText::begin(advice, &[place]);
    xml.open("dds");
    xml.open("qos_library name=\"Thalweg\"");
    xml.open("qos_profile name=\"Measured\" is_default_qos=\"true\"");
    xml.open("domain_participant_qos");
    xml.open("property");
    xml.open("value");
    let udp = "dds.transport.UDPv4.builtin";
    xml.property(&format!("{udp}.parent.message_size_max"), advice.datagram_bytes(), advice.of_datagrams());
    xml.property(&format!("{udp}.recv_socket_buffer_size"), RECEIVE_BUFFER, BUFFERS);
    xml.property(&format!("{udp}.send_socket_buffer_size"), SEND_BUFFER, BUFFERS);
    if let Some(bucket) = advice.bucket() {
        let name = format!("dds.flow_controller.token_bucket.{}.token_bucket", bucket.name);
        let period = Duration::from_micros(bucket.period_us);
        xml.property(&format!("{name}.max_tokens"), 1, &advice.of_method());
        xml.property(&format!("{name}.tokens_added_per_period"), 1, "one grant in a period");
        xml.property(&format!("{name}.tokens_leaked_per_period"), 0, "a bucket that holds one token saves none");
        xml.property(&format!("{name}.bytes_per_token"), bucket.bytes_per_token, "the grant");
        xml.property(&format!("{name}.period.sec"), period.as_secs(), "the period");
        xml.property(&format!("{name}.period.nanosec"), period.subsec_nanos(), "the period");
    }
    xml.close();
    xml.close();
    xml.close();
    xml.open("datawriter_qos");
    xml.standard_policies(advice);
    if advice.is_reliable() {
        xml.note(&advice.of_heartbeats());
        xml.open("protocol");
        xml.open("rtps_reliable_writer");
        xml.time("heartbeat_period", advice.heartbeat_period());
        xml.close();
        xml.close();
    }
    xml.connext_publish_mode(advice);
    xml.connext_batch(advice);
    xml.close();
    xml.open("datareader_qos");
    xml.standard_policies(advice);
    xml.close();
    xml.end()
}

impl Advice<'_> {
    /// Largest datagram: the chosen one, or as much as a path takes, which is a packet on a link and most of 64 KiB on one host.
    fn datagram_bytes(&self) -> u64 {
        let of_path = if self.chosen.wire_mbit.is_some() { PACKET_PAYLOAD } else { DATAGRAM_MAX };
        self.chosen.way.sending.max_datagram_bytes.unwrap_or(of_path)
    }

    fn of_datagrams(&self) -> &'static str {
        match (self.chosen.way.sending.max_datagram_bytes, self.chosen.wire_mbit) {
            (Some(_), _) => "samples leave in fragments of one packet each",
            (None, Some(_)) => {
                "one packet of 1,500 B, as it was measured: a larger datagram is lost with any of its packets"
            }
            (None, None) => "one host carries datagrams of this size, as it was measured",
        }
    }
}

/// XML that is written from the top, with its open elements.
struct XmlText {
    text: String,
    open: Vec<String>,
}

impl XmlText {
    fn begin(advice: &Advice<'_>, notes: &[&str]) -> XmlText {
        let mut xml = XmlText { text: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned(), open: Vec::new() };
        notes.iter().for_each(|note| xml.note(note));
        advice.head().iter().for_each(|note| xml.note(note));
        if advice.chosen.way.sending.method == PackingMethod::Auto {
            xml.note("Thalweg's method auto, which collects samples under pressure alone, has no like here: samples leave at once.");
        }
        xml
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(&format!("{:1$}{line}\n", "", 2 * self.open.len()));
    }

    fn open(&mut self, element: &str) {
        self.line(&format!("<{element}>"));
        self.open.push(element.split(' ').next().unwrap_or(element).to_owned());
    }

    fn close(&mut self) {
        let name = self.open.pop().unwrap_or_default();
        self.line(&format!("</{name}>"));
    }

    /// Closes all that is open.
    fn end(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    /// A comment, in which XML allows no two dashes.
    fn note(&mut self, text: &str) {
        self.line(&format!("<!-- {} -->", text.replace("--", "- -")));
    }

    /// An element with a value that needs no escapes: a number or a word.
    fn leaf(&mut self, element: &str, value: impl Display) {
        let name = element.split(' ').next().unwrap_or(element);
        self.line(&format!("<{element}>{value}</{name}>"));
    }

    /// An element with its reason.
    fn set(&mut self, element: &str, value: impl Display, reason: &str) {
        self.note(reason);
        self.leaf(element, value);
    }

    fn time(&mut self, element: &str, time: Duration) {
        self.open(element);
        self.leaf("sec", time.as_secs());
        self.leaf("nanosec", time.subsec_nanos());
        self.close();
    }

    fn property(&mut self, name: &str, value: impl Display, reason: &str) {
        self.note(reason);
        self.open("element");
        self.leaf("name", name);
        self.leaf("value", value);
        self.close();
    }

    /// RELIABILITY, HISTORY and RESOURCE_LIMITS by the names of DDS-XML.
    fn standard_policies(&mut self, advice: &Advice<'_>) {
        self.note(&advice.of_reliability());
        self.open("reliability");
        self.leaf(
            "kind",
            if advice.is_reliable() { "RELIABLE_RELIABILITY_QOS" } else { "BEST_EFFORT_RELIABILITY_QOS" },
        );
        if advice.is_reliable() {
            self.time("max_blocking_time", advice.max_blocking());
        }
        self.close();
        self.note(&advice.of_history());
        self.open("history");
        let (kind, depth, room) = match advice.chosen.history {
            HistorySetting::KeepLast(depth) => ("KEEP_LAST_HISTORY_QOS", depth, None),
            HistorySetting::KeepAll(room) => ("KEEP_ALL_HISTORY_QOS", 1, Some(room)),
        };
        self.leaf("kind", kind);
        self.leaf("depth", depth);
        self.close();
        if let Some(room) = room {
            self.open("resource_limits");
            self.leaf("max_samples", room);
            self.close();
        }
    }

    fn fast_dds_history(&mut self, advice: &Advice<'_>) {
        let (kind, HistorySetting::KeepLast(samples) | HistorySetting::KeepAll(samples)) = (
            if matches!(advice.chosen.history, HistorySetting::KeepAll(_)) { "KEEP_ALL" } else { "KEEP_LAST" },
            advice.chosen.history,
        );
        self.open("topic");
        self.note(&advice.of_history());
        self.open("historyQos");
        self.leaf("kind", kind);
        self.leaf("depth", samples);
        self.close();
        self.note("for a topic without a key; give one with a key as many instances");
        self.open("resourceLimitsQos");
        self.leaf("max_samples", samples);
        self.leaf("max_instances", 1);
        self.leaf("max_samples_per_instance", samples);
        self.leaf("allocated_samples", samples.min(100));
        self.close();
        self.close();
    }

    fn fast_dds_publish_mode(&mut self, advice: &Advice<'_>) {
        self.note(&advice.of_method());
        if advice.limits().is_some() {
            self.note("Fast DDS collects no samples: each has a datagram of its own, so that CPU and wire are above those measured.");
        }
        self.open("publishMode");
        match advice.bucket() {
            Some(bucket) => {
                self.leaf("kind", "ASYNCHRONOUS");
                self.leaf("flow_controller_name", &bucket.name);
            }
            None => self.leaf("kind", "SYNCHRONOUS"),
        }
        self.close();
    }

    fn connext_publish_mode(&mut self, advice: &Advice<'_>) {
        let is_split = u64::from(advice.choice.goal.sample_bytes) + FRAGMENT_HEADERS > advice.datagram_bytes();
        match advice.bucket() {
            Some(_) => self.note(&advice.of_method()),
            None if is_split => self.note("samples larger than message_size_max need asynchronous writers"),
            None => self.note(&format!("{}; no thread stands between", advice.of_method())),
        }
        self.open("publish_mode");
        let is_asynchronous = is_split || advice.bucket().is_some();
        self.leaf(
            "kind",
            if is_asynchronous { "ASYNCHRONOUS_PUBLISH_MODE_QOS" } else { "SYNCHRONOUS_PUBLISH_MODE_QOS" },
        );
        if let Some(bucket) = advice.bucket() {
            self.leaf("flow_controller_name", format_args!("dds.flow_controller.token_bucket.{}", bucket.name));
        }
        self.close();
    }

    fn connext_batch(&mut self, advice: &Advice<'_>) {
        let Some(limits) = advice.limits() else {
            return self.note("batch stays off: no collecting method was chosen");
        };
        self.note(&advice.of_method());
        self.open("batch");
        self.leaf("enable", true);
        self.leaf("max_data_bytes", limits.max_bytes);
        if let Some(samples) = limits.max_samples {
            self.leaf("max_samples", samples);
        }
        self.time("max_flush_delay", Duration::from_micros(limits.max_flush_delay_us));
        self.close();
    }
}

/// Largest UDP payload that all of them allow.
const DATAGRAM_MAX: u64 = 65_500;
/// What a packet of 1,500 B holds over UDP and IPv4.
const PACKET_PAYLOAD: u64 = 1_472;
/// Headers of a fragment: message, timestamp, destination and DATA_FRAG.
const FRAGMENT_HEADERS: u64 = 100;
/// What Thalweg's sockets ask for.
const RECEIVE_BUFFER: u32 = 8 << 20;
const SEND_BUFFER: u32 = 1 << 20;
const BUFFERS: &str = "measured with this; as far as net.core.rmem_max and wmem_max allow";
