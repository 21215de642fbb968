//! Samples of several types that all end with the time when they were written and their number.

use std::time::Duration;

use thalweg::cdr::{Representation, encode};
use thalweg::qos::{self, ReaderQos, ResourceLimits, WriterQos};
use thalweg::types::Keyed;
use thalweg::{DataWriter, Topic, TopicType};
use thalweg_lab_station::{Fault, Publication, WriterEffort};

use super::{ArrivedSample, SampleReceiver, Sending, Station};
use crate::error::LabError;
use crate::scenario::{HistorySetting, Load, Qos, ReliabilitySetting};

/// `payload_bytes` octets.
#[derive(Clone, Debug, Topic)]
#[topic(name = "thalweg::lab::Octets", extensibility = "final")]
pub(crate) struct Octets {
    pub(crate) data: Vec<u8>,
    pub(crate) time: i64,
    pub(crate) id: u64,
}

/// Sixteen octets, as Apex.AI's performance_test sends them.
#[derive(Clone, Debug, Topic)]
#[topic(name = "thalweg::lab::Struct16", extensibility = "final")]
pub(crate) struct Struct16 {
    pub(crate) data: [u8; 16],
    pub(crate) time: i64,
    pub(crate) id: u64,
}

/// An array of 64 KiB, as Apex.AI's performance_test sends it.
#[derive(Clone, Debug, Topic)]
#[topic(name = "thalweg::lab::Array64k", extensibility = "final")]
pub(crate) struct Array64k {
    pub(crate) array: Box<[u8; 65_536]>,
    pub(crate) time: i64,
    pub(crate) id: u64,
}

/// ROS 2's point cloud with 1 MiB of data, as Apex.AI's performance_test sends it.
#[derive(Clone, Debug, Topic)]
#[topic(name = "thalweg::lab::PointCloud1m", extensibility = "final")]
pub(crate) struct PointCloud1m {
    pub(crate) header: Header,
    pub(crate) height: u32,
    pub(crate) width: u32,
    pub(crate) fields: [PointField; 8],
    pub(crate) is_bigendian: bool,
    pub(crate) point_step: u32,
    pub(crate) row_step: u32,
    pub(crate) data: Box<[u8; 1_048_576]>,
    pub(crate) is_dense: bool,
    pub(crate) time: i64,
    pub(crate) id: u64,
}

/// When and where something was seen.
#[derive(Clone, Debug, Default, Topic)]
#[topic(name = "thalweg::lab::Header", extensibility = "final")]
pub(crate) struct Header {
    pub(crate) seconds: i32,
    pub(crate) nanoseconds: u32,
    pub(crate) frame_id: String,
}

/// One column of a point cloud.
#[derive(Clone, Debug, Default, Topic)]
#[topic(name = "thalweg::lab::PointField", extensibility = "final")]
pub(crate) struct PointField {
    pub(crate) name: String,
    pub(crate) offset: u32,
    pub(crate) datatype: u8,
    pub(crate) count: u32,
}

/// A sample that carries a time and a number in its last 16 bytes.
pub(crate) trait Stamped: TopicType {
    /// Sets both.
    fn stamp(&mut self, time: i64, id: u64);
}

/// Implements [`Stamped`] for structs whose last members are `time` and `id`. For `Struct16` it expands to
/// `impl Stamped for Struct16 { fn stamp(&mut self, time: i64, id: u64) { (self.time, self.id) = (time, id); } }`.
macro_rules! stamped {
    ($($name:ident),+) => {
        $(impl Stamped for $name {
            fn stamp(&mut self, time: i64, id: u64) {
                (self.time, self.id) = (time, id);
            }
        })+
    };
}

stamped!(Octets, Struct16, Array64k, PointCloud1m);

struct Typed<T> {
    writer: DataWriter<T>,
    sample: T,
}

impl<T: Stamped + Send + 'static> Publication for Typed<T> {
    fn matched(&self) -> usize {
        self.writer.matched_readers().len()
    }

    fn write(&mut self, time_ns: u64, id: u64) -> Result<bool, Fault> {
        // The host's monotonic clock started with the host, 292 years fit.
        self.sample.stamp(i64::try_from(time_ns).unwrap_or(i64::MAX), id);
        match self.writer.write(&self.sample) {
            Ok(_) => Ok(true),
            Err(error) if error.is_timeout() => Ok(false),
            Err(error) => Err(Fault::here(error)),
        }
    }

    fn wait_for_acknowledgements(&self, patience: Duration) -> Result<bool, Fault> {
        self.writer.flush();
        match self.writer.wait_for_acknowledgments(patience) {
            Ok(()) => Ok(true),
            Err(error) if error.is_timeout() => Ok(false),
            Err(error) => Err(Fault::here(error)),
        }
    }

    fn effort(&self) -> WriterEffort {
        let counters = self.writer.counters();
        WriterEffort {
            transmitted: counters.transmitted,
            repaired: counters.repaired,
            heartbeats: counters.heartbeats,
            acknacks: counters.acknacks,
            overwritten: counters.overwritten_unacknowledged,
        }
    }
}

impl Station {
    /// A writer of `load` on `topic`.
    ///
    /// # Errors
    /// The middleware refuses it.
    pub(crate) fn publication(
        &self,
        topic: &str,
        load: Load,
        qos: &Qos,
        sending: &Sending,
    ) -> Result<Box<dyn Publication>, LabError> {
        let qos = writer_qos(qos, sending);
        match load {
            Load::Octets(bytes) => self.typed(topic, qos, octets(bytes)),
            Load::Struct16 => self.typed(topic, qos, struct16()),
            Load::Array64k => self.typed(topic, qos, array_64k()),
            Load::PointCloud1m => self.typed(topic, qos, point_cloud()),
        }
    }

    fn typed<T: Stamped + Send + 'static>(
        &self,
        topic: &str,
        qos: WriterQos,
        sample: T,
    ) -> Result<Box<dyn Publication>, LabError> {
        let topic = self.participant().create_topic::<T>(topic);
        let writer = self.participant().create_writer(&topic, qos).map_err(LabError::here)?;
        Ok(Box::new(Typed { writer, sample }))
    }

    /// A reader of `load` on `topic`; the payload of what arrives is the eight bytes of the time.
    ///
    /// # Errors
    /// The middleware refuses it.
    pub(crate) fn subscription(&self, topic: &str, load: Load, qos: &Qos) -> Result<SampleReceiver, LabError> {
        let name = match load {
            Load::Octets(_) => Octets::TYPE_NAME,
            Load::Struct16 => Struct16::TYPE_NAME,
            Load::Array64k => Array64k::TYPE_NAME,
            Load::PointCloud1m => PointCloud1m::TYPE_NAME,
        };
        let topic = self.participant().create_raw_topic(topic, name, Keyed::No, None);
        let (history, resource_limits) = history(qos);
        let reliability = match qos.reliability {
            ReliabilitySetting::BestEffort => qos::Reliability::BestEffort,
            ReliabilitySetting::Reliable => qos::Reliability::RELIABLE,
        };
        let qos = ReaderQos { reliability, history, resource_limits, ..ReaderQos::default() };
        let reader = self.participant().create_reader(&topic, qos).map_err(LabError::here)?;
        Ok(SampleReceiver::new(reader, stamp))
    }
}

/// Bytes of a serialized sample of `load` in XCDR1, without the encapsulation header.
///
/// # Errors
/// It cannot be serialized.
pub(crate) fn serialized_bytes(load: Load) -> Result<u64, LabError> {
    match load {
        Load::Octets(bytes) => encoded_bytes(&octets(bytes)),
        Load::Struct16 => encoded_bytes(&struct16()),
        Load::Array64k => encoded_bytes(&array_64k()),
        Load::PointCloud1m => encoded_bytes(&point_cloud()),
    }
}

fn encoded_bytes(sample: &impl Stamped) -> Result<u64, LabError> {
    const ENCAPSULATION_BYTES: usize = 4;
    let mut out = Vec::new();
    encode(sample, Representation::Xcdr1, &mut out).map_err(LabError::here)?;
    Ok((out.len() - ENCAPSULATION_BYTES) as u64)
}

fn writer_qos(qos: &Qos, sending: &Sending) -> WriterQos {
    let (history, resource_limits) = history(qos);
    let reliability = match qos.reliability {
        ReliabilitySetting::BestEffort => qos::Reliability::BestEffort,
        ReliabilitySetting::Reliable => qos::Reliability::Reliable { max_blocking_time: qos.max_blocking },
    };
    let (transmission, transport_priority) = (sending.to_qos(), sending.priority);
    WriterQos { reliability, history, resource_limits, transmission, transport_priority, ..WriterQos::default() }
}

fn history(qos: &Qos) -> (qos::History, ResourceLimits) {
    match qos.history {
        HistorySetting::KeepLast(depth) => (qos::History::KeepLast(depth), ResourceLimits::default()),
        HistorySetting::KeepAll(room) => (qos::History::KeepAll, super::middleware::limits(room)),
    }
}

fn octets(bytes: u32) -> Octets {
    Octets { data: vec![0x5a; bytes as usize], time: 0, id: 0 }
}

fn struct16() -> Struct16 {
    Struct16 { data: [0x5a; 16], time: 0, id: 0 }
}

fn array_64k() -> Array64k {
    Array64k { array: filled(), time: 0, id: 0 }
}

fn point_cloud() -> PointCloud1m {
    let field = |index: u32| PointField { name: format!("f{index}"), offset: 4 * index, datatype: 7, count: 1 };
    PointCloud1m {
        header: Header { frame_id: "lidar".to_owned(), ..Header::default() },
        height: 1,
        width: 32_768,
        fields: [0, 1, 2, 3, 4, 5, 6, 7].map(field),
        is_bigendian: false,
        point_step: 32,
        row_step: 1 << 20,
        data: filled(),
        is_dense: true,
        time: 0,
        id: 0,
    }
}

/// An array on the heap that was never on the stack, which has no room for the large ones.
fn filled<const N: usize>() -> Box<[u8; N]> {
    vec![0x5a; N].into_boxed_slice().try_into().expect("the length is the array's")
}

/// Reads time and number of a serialized [`Stamped`] in place: they are its last 16 bytes in XCDR1 and XCDR2.
fn stamp(serialized: &[u8]) -> Result<ArrivedSample<'_>, LabError> {
    let read = || {
        let is_little = serialized.get(1)? & 1 == 1;
        let (_, end) = serialized.get(4..)?.split_last_chunk::<16>()?;
        let (time, id) = end.split_first_chunk::<8>()?;
        let number = u64::from_le_bytes(id.try_into().ok()?);
        is_little.then_some(ArrivedSample { number, payload: time, serialized })
    };
    read().ok_or_else(|| LabError::Here("a sample arrived that no scenario of this version sends".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serialized_sample_is_as_long_as_its_members() {
        let bytes = |load| serialized_bytes(load).expect("serialized");
        assert_eq!((bytes(Load::Struct16), bytes(Load::Array64k)), (32, 65_552));
        // Length, five octets, padding to eight, time and number.
        assert_eq!(bytes(Load::Octets(5)), 4 + 5 + 7 + 16);
        assert!((1 << 20..(1 << 20) + 400).contains(&bytes(Load::PointCloud1m)));
    }

    #[track_caller]
    fn check(mut sample: impl Stamped, bytes: usize) {
        sample.stamp(0x0102_0304_0506_0708, 77);
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let mut out = Vec::new();
            encode(&sample, representation, &mut out).expect("encoded");
            let arrival = stamp(&out).expect("read");
            assert_eq!(arrival.number, 77);
            assert_eq!(arrival.payload, 0x0102_0304_0506_0708_i64.to_le_bytes());
            assert!((bytes + 16..bytes + 400).contains(&out.len()), "{} bytes", out.len());
        }
    }

    #[test]
    fn time_and_number_are_read_where_the_codec_writes_them() {
        for bytes in [0, 1, 5, 100, 1_003] {
            check(octets(bytes), bytes as usize);
        }
        check(struct16(), 16);
        check(array_64k(), 65_536);
        check(point_cloud(), 1 << 20);
    }

    #[test]
    fn what_is_too_short_or_of_another_byte_order_is_no_sample() {
        assert!(stamp(&[0, 1, 0, 0]).is_err() && stamp(&[]).is_err() && stamp(&[0, 1, 0, 0, 9, 9]).is_err());
        assert!(stamp(&[0; 36]).is_err(), "big endian");
    }
}
