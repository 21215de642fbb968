//! The chosen settings in the files of other vendors, by their nearest means. What they have no setting for stands there as a comment.

use std::time::Duration;

use super::files::Advice;
use crate::scenario::HistorySetting;
use crate::station::PackingMethod;

/// Settings of Cyclone DDS for `CYCLONEDDS_URI`.
pub(super) fn cyclone(advice: &Advice<'_>) -> String {
    let datagrams = match (advice.chosen.way.sending.max_datagram_bytes, advice.limits()) {
        (Some(bytes), _) => format!(
            "# {}\nMaxMessageSize: {bytes} B\n# a fragment with its headers fills one\nFragmentSize: {} B\n",
            advice.of_datagrams(),
            bytes - FRAGMENT_HEADERS
        ),
        (None, Some(limits)) => format!(
            "# samples are collected up to this; smaller datagrams would end a batch early\nMaxMessageSize: {} B\n",
            limits.max_bytes.min(advice.datagram_bytes())
        ),
        (None, None) => "# MaxMessageSize and FragmentSize as shipped: no limit of datagrams was chosen.\n".to_owned(),
    };
    let heartbeats = match advice.is_reliable() {
        true => {
            format!("# {}\nHeartbeatInterval: {} ms\n", advice.of_heartbeats(), advice.heartbeat_period().as_millis())
        }
        false => String::new(),
    };
    let pace = advice.bucket().map(|bucket| {
        let (bytes, period) = (bucket.bytes_per_token, bucket.period_us);
        format!(
            "# Cyclone DDS has no flow controller: the program that writes has to keep {bytes} B in each {period} us.\n"
        )
    });
    let body = format!(
        "CycloneDDS\n  Domain Id=\"any\"\n    General\n{}    Internal\n{}      # {BUFFERS}\n      SocketReceiveBufferSize \
         max=\"{RECEIVE_BUFFER} B\"\n      # WriteBatch is deprecated; cyclonedds-qos.xml has the policy in its place.\n{}",
        nested(3, &datagrams),
        nested(3, &heartbeats),
        nested(1, &pace.unwrap_or_default())
    );
    document(
        advice,
        "Cyclone DDS 11: CYCLONEDDS_URI=file:///path/to/this/file; its QoS stand in cyclonedds-qos.xml.",
        &body,
    )
}

/// QoS of Cyclone DDS for `dds_create_qos_provider`.
pub(super) fn cyclone_qos(advice: &Advice<'_>) -> String {
    let flush = advice.limits().map(|limits| {
        format!(
            "# A batch leaves when it is full or by dds_write_flush; no setting lets it wait at most {} us: call it as often.\n",
            limits.max_flush_delay_us
        )
    });
    let batching = format!(
        "# {}\n{}writer_batching\n  batch_updates: {}\n",
        advice.of_method(),
        flush.unwrap_or_default(),
        advice.limits().is_some()
    );
    let policies = nested(4, &standard_policies(advice));
    let body = format!(
        "dds\n  qos_library name=\"Thalweg\"\n    qos_profile name=\"Measured\"\n      datawriter_qos\n{policies}{}      \
         datareader_qos\n{policies}",
        nested(4, &batching)
    );
    document(advice, "Cyclone DDS 11: dds_create_qos_provider(path, &provider), key \"Thalweg::Measured\".", &body)
}

/// Profiles of Fast DDS for `FASTDDS_DEFAULT_PROFILES_FILE`.
pub(super) fn fast_dds(advice: &Advice<'_>) -> String {
    let controller = advice.bucket().map(|bucket| {
        format!(
            "# {}\nflow_controller_descriptor_list\n  flow_controller_descriptor\n    name: {}\n    scheduler: FIFO\n    \
             max_bytes_per_period: {}\n    period_ms: {}\n",
            advice.of_method(),
            bucket.name,
            bucket.bytes_per_token,
            bucket.period_us.div_ceil(1_000)
        )
    });
    let body = format!(
        "dds\n  profiles xmlns=\"http://www.eprosima.com\"\n    transport_descriptors\n      transport_descriptor\n        \
         transport_id: measured_udp\n        type: UDPv4\n        # {BUFFERS}\n        sendBufferSize: {SEND_BUFFER}\n        \
         receiveBufferSize: {RECEIVE_BUFFER}\n        # {}\n        maxMessageSize: {}\n    participant \
         profile_name=\"measured_participant\" is_default_profile=\"true\"\n      rtps\n{}        # UDP alone, as it was measured: \
         without this, processes of one host use shared memory.\n        userTransports\n          transport_id: measured_udp\n        \
         useBuiltinTransports: false\n{}",
        advice.of_datagrams(),
        advice.datagram_bytes(),
        nested(4, &controller.unwrap_or_default()),
        nested(2, &fast_dds_endpoints(advice))
    );
    let place =
        "Fast DDS 3: FASTDDS_DEFAULT_PROFILES_FILE=/path/to/this/file; programs that ask for profiles name measured_*.";
    document(advice, place, &body)
}

/// Its writers and readers.
fn fast_dds_endpoints(advice: &Advice<'_>) -> String {
    let (kind, samples) = match advice.chosen.history {
        HistorySetting::KeepLast(depth) => ("KEEP_LAST", depth),
        HistorySetting::KeepAll(room) => ("KEEP_ALL", room),
    };
    let topic = format!(
        "topic\n  # {}\n  historyQos\n    kind: {kind}\n    depth: {samples}\n  # for a topic without a key; give one with a key as many \
         instances\n  resourceLimitsQos\n    max_samples: {samples}\n    max_instances: 1\n    max_samples_per_instance: {samples}\n    \
         allocated_samples: {}\n",
        advice.of_history(),
        samples.min(100)
    );
    let reliability =
        |kind: &str, blocking: &str| format!("# {}\nreliability\n  kind: {kind}\n{blocking}", advice.of_reliability());
    let (of_writer, of_reader, times) = match advice.is_reliable() {
        true => (
            reliability("RELIABLE", &nested(1, &time("max_blocking_time", advice.max_blocking()))),
            reliability("RELIABLE", ""),
            format!(
                "# {}\ntimes\n{}",
                advice.of_heartbeats(),
                nested(1, &time("heartbeat_period", advice.heartbeat_period()))
            ),
        ),
        false => (reliability("BEST_EFFORT", ""), reliability("BEST_EFFORT", ""), String::new()),
    };
    let batches = match advice.limits() {
        Some(_) => {
            "# Fast DDS collects no samples: each has a datagram of its own; CPU and wire are above those measured.\n"
        }
        None => "",
    };
    let mode = match advice.bucket() {
        Some(bucket) => format!("kind: ASYNCHRONOUS\nflow_controller_name: {}\n", bucket.name),
        None => "kind: SYNCHRONOUS\n".to_owned(),
    };
    let mode = format!("# {}\n{batches}publishMode\n{}", advice.of_method(), nested(1, &mode));
    let topic = nested(1, &topic);
    format!(
        "data_writer profile_name=\"measured_writer\" is_default_profile=\"true\"\n{topic}  qos\n{}{}{}data_reader \
         profile_name=\"measured_reader\" is_default_profile=\"true\"\n{topic}  qos\n{}",
        nested(2, &of_writer),
        nested(2, &mode),
        nested(1, &times),
        nested(2, &of_reader)
    )
}

/// A profile of RTI Connext, in the order of its documentation.
pub(super) fn connext(advice: &Advice<'_>) -> String {
    let property = |name: &str, value: u64| format!("element\n  name: {name}\n  value: {value}\n");
    let udp = |name: &str, value| property(&format!("dds.transport.UDPv4.builtin.{name}"), value);
    let mut properties = format!(
        "# {}\n{}# {BUFFERS}\n{}{}",
        advice.of_datagrams(),
        udp("parent.message_size_max", advice.datagram_bytes()),
        udp("recv_socket_buffer_size", RECEIVE_BUFFER),
        udp("send_socket_buffer_size", SEND_BUFFER)
    );
    let controller = advice.bucket().map(|bucket| format!("dds.flow_controller.token_bucket.{}", bucket.name));
    if let Some((bucket, name)) = advice.bucket().zip(controller.as_ref()) {
        properties += &format!("# {}; one grant in a period\n", advice.of_method());
        let period = Duration::from_micros(bucket.period_us);
        let of_bucket = [
            ("max_tokens", 1),
            ("tokens_added_per_period", 1),
            ("tokens_leaked_per_period", 0),
            ("bytes_per_token", u64::from(bucket.bytes_per_token)),
            ("period.sec", period.as_secs()),
            ("period.nanosec", u64::from(period.subsec_nanos())),
        ];
        properties.extend(of_bucket.map(|(key, value)| property(&format!("{name}.token_bucket.{key}"), value)));
    }
    let protocol = match advice.is_reliable() {
        true => format!(
            "# {}\nprotocol\n  rtps_reliable_writer\n{}",
            advice.of_heartbeats(),
            nested(2, &time("heartbeat_period", advice.heartbeat_period()))
        ),
        false => String::new(),
    };
    let is_split = u64::from(advice.choice.goal.sample_bytes) + FRAGMENT_HEADERS > advice.datagram_bytes();
    let mode = match controller {
        Some(name) => {
            format!("# {}\npublish_mode\n  kind: {ASYNCHRONOUS}\n  flow_controller_name: {name}\n", advice.of_method())
        }
        None if is_split => {
            format!(
                "# samples larger than message_size_max need asynchronous writers\npublish_mode\n  kind: {ASYNCHRONOUS}\n"
            )
        }
        None => format!("# {}; no thread stands between\npublish_mode\n  kind: {SYNCHRONOUS}\n", advice.of_method()),
    };
    let batch = advice.limits().map(|limits| {
        let samples = limits.max_samples.map(|samples| format!("  max_samples: {samples}\n")).unwrap_or_default();
        let delay = nested(1, &time("max_flush_delay", Duration::from_micros(limits.max_flush_delay_us)));
        format!(
            "# {}\nbatch\n  enable: true\n  max_data_bytes: {}\n{samples}{delay}",
            advice.of_method(),
            limits.max_bytes
        )
    });
    let batch = batch.unwrap_or_else(|| "# batch stays off: no collecting method was chosen\n".to_owned());
    let policies = standard_policies(advice);
    let body = format!(
        "dds\n  qos_library name=\"Thalweg\"\n    qos_profile name=\"Measured\" is_default_qos=\"true\"\n      \
         domain_participant_qos\n        property\n          value\n{}      datawriter_qos\n{}      datareader_qos\n{}",
        nested(6, &properties),
        nested(4, &[policies.as_str(), &protocol, &mode, &batch].concat()),
        nested(4, &policies)
    );
    let place = "RTI Connext 7: USER_QOS_PROFILES.xml in the working directory, or NDDS_QOS_PROFILES. It was not measured with Connext.";
    document(advice, place, &body)
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

/// RELIABILITY, HISTORY and RESOURCE_LIMITS by the names of DDS-XML.
fn standard_policies(advice: &Advice<'_>) -> String {
    let reliability = match advice.is_reliable() {
        true => format!(
            "  kind: RELIABLE_RELIABILITY_QOS\n{}",
            nested(1, &time("max_blocking_time", advice.max_blocking()))
        ),
        false => "  kind: BEST_EFFORT_RELIABILITY_QOS\n".to_owned(),
    };
    let history = match advice.chosen.history {
        HistorySetting::KeepLast(depth) => format!("  kind: KEEP_LAST_HISTORY_QOS\n  depth: {depth}\n"),
        HistorySetting::KeepAll(room) => {
            format!("  kind: KEEP_ALL_HISTORY_QOS\n  depth: 1\nresource_limits\n  max_samples: {room}\n")
        }
    };
    format!("# {}\nreliability\n{reliability}# {}\nhistory\n{history}", advice.of_reliability(), advice.of_history())
}

fn time(element: &str, time: Duration) -> String {
    format!("{element}\n  sec: {}\n  nanosec: {}\n", time.as_secs(), time.subsec_nanos())
}

/// An outline so many levels deeper.
fn nested(levels: usize, outline: &str) -> String {
    outline.lines().map(|line| format!("{:1$}{line}\n", "", 2 * levels)).collect()
}

/// XML from an outline: `name: value` and `name` with its attributes are elements, which hold the lines that are indented by two more;
/// `# text` is a comment. Values are numbers and words that need no escapes.
fn document(advice: &Advice<'_>, place: &str, outline: &str) -> String {
    let mut notes = vec![place.to_owned()];
    notes.extend(advice.head());
    if advice.chosen.way.sending.method == PackingMethod::Auto {
        notes.push("Thalweg's method auto, which collects samples under pressure alone, has no like here: samples leave at once.".to_owned());
    }
    let outline: String = notes.iter().map(|note| format!("# {note}\n")).chain([outline.to_owned()]).collect();
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let mut open: Vec<&str> = Vec::new();
    let close = |open: &mut Vec<&str>, depth: usize, out: &mut String| {
        while open.len() > depth {
            let name = open.pop().unwrap_or_default();
            out.push_str(&format!("{:1$}</{name}>\n", "", 2 * open.len()));
        }
    };
    for line in outline.lines() {
        let text = line.trim_start();
        let depth = (line.len() - text.len()) / 2;
        close(&mut open, depth, &mut out);
        let xml = match (text.strip_prefix("# "), text.split_once(": ")) {
            // XML allows no two dashes within a comment.
            (Some(note), _) => format!("<!-- {} -->", note.replace("--", "- -")),
            (None, Some((element, value))) => format!("<{element}>{value}</{element}>"),
            (None, None) => {
                open.push(text.split(' ').next().unwrap_or(text));
                format!("<{text}>")
            }
        };
        out.push_str(&format!("{:1$}{xml}\n", "", 2 * depth));
    }
    close(&mut open, 0, &mut out);
    out
}

/// Largest UDP payload that all of them allow.
const DATAGRAM_MAX: u64 = 65_500;
/// What a packet of 1,500 B holds over UDP and IPv4.
const PACKET_PAYLOAD: u64 = 1_472;
/// Headers of a fragment: message, timestamp, destination and DATA_FRAG.
const FRAGMENT_HEADERS: u64 = 100;
/// What Thalweg's sockets ask for.
const RECEIVE_BUFFER: u64 = 8 << 20;
const SEND_BUFFER: u64 = 1 << 20;
const BUFFERS: &str = "measured with this; as far as net.core.rmem_max and wmem_max allow";
const SYNCHRONOUS: &str = "SYNCHRONOUS_PUBLISH_MODE_QOS";
const ASYNCHRONOUS: &str = "ASYNCHRONOUS_PUBLISH_MODE_QOS";
