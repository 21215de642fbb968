//! What experiments send: numbered octets, and samples of several types that all end with the time when they were written and their
//! number.

use thalweg::cdr::{Representation, encode};
use thalweg::{Topic, TopicType};
use thalweg_lab_station::{NumberedSample, ScheduledSample};

use crate::error::LabError;
use crate::scenario::Load;

/// A number and octets: the type `ThalwegBurst` of `peers/README.md`, which all peers have.
#[derive(Clone, Debug, Default, PartialEq, Topic)]
#[topic(name = "ThalwegBurst", extensibility = "final")]
pub struct Numbered {
    /// Its place in the experiment.
    pub number: u64,
    /// The octets that are moved.
    pub payload: Vec<u8>,
}

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

/// A type that experiments send.
pub trait Carried: TopicType + ScheduledSample {
    /// The sample of an open schedule with this load, where it is of this type.
    fn scheduled(load: Load) -> Option<Self>;

    /// Its number.
    fn number(&self) -> u64;

    /// Its octets.
    fn octets(&self) -> &[u8];

    /// The time that an open schedule put into it.
    fn time_ns(&self) -> Option<u64>;

    /// Number and octets of a serialized sample in place; of a sample that ends with its time, the eight octets of that. `None` for
    /// what no experiment of this version sends.
    fn read(serialized: &[u8]) -> Option<(u64, &[u8])>;
}

impl ScheduledSample for Numbered {
    fn stamp(&mut self, time_ns: u64, id: u64) {
        self.number = id;
        if let Some(time) = self.payload.first_chunk_mut() {
            *time = time_ns.to_le_bytes();
        }
    }

    fn octets_mut(&mut self) -> &mut [u8] {
        &mut self.payload
    }
}

impl NumberedSample for Numbered {
    fn of(bytes: Vec<u8>) -> Numbered {
        Numbered { number: 0, payload: bytes }
    }

    fn set_number(&mut self, number: u64) {
        self.number = number;
    }

    fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.payload
    }
}

impl Carried for Numbered {
    fn scheduled(_load: Load) -> Option<Numbered> {
        None
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn octets(&self) -> &[u8] {
        &self.payload
    }

    fn time_ns(&self) -> Option<u64> {
        self.payload.first_chunk().map(|time| u64::from_le_bytes(*time))
    }

    /// After the encapsulation header the number, then length and octets; XCDR1 and XCDR2 lay them out alike.
    fn read(serialized: &[u8]) -> Option<(u64, &[u8])> {
        let (header, rest) = serialized.split_first_chunk::<4>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let payload = rest.get(..u32::from_le_bytes(*length) as usize)?;
        is_little(*header).then_some((u64::from_le_bytes(*number), payload))
    }
}

/// The lowest bit of the encapsulation tells the byte order; Thalweg's writers set it: little endian.
fn is_little(header: [u8; 4]) -> bool {
    header[1] & 1 == 1
}

/// Implements [`Carried`] for structs whose last members are `time` and `id`, of which `$make` makes a sample, and whose octets lie in
/// `$octets`. For `Struct16` `stamp` expands to `fn stamp(&mut self, time_ns: u64, id: u64) { (self.time, self.id) = (…, id); }`.
macro_rules! stamped {
    ($($name:ident { $octets:ident } of $make:ident;)+) => {
        $(impl ScheduledSample for $name {
            fn stamp(&mut self, time_ns: u64, id: u64) {
                // The host's monotonic clock started with the host, 292 years fit.
                (self.time, self.id) = (i64::try_from(time_ns).unwrap_or(i64::MAX), id);
            }

            fn octets_mut(&mut self) -> &mut [u8] {
                &mut self.$octets[..]
            }
        }

        impl Carried for $name {
            fn scheduled(load: Load) -> Option<$name> {
                $make(load)
            }

            fn number(&self) -> u64 {
                self.id
            }

            fn octets(&self) -> &[u8] {
                &self.$octets[..]
            }

            fn time_ns(&self) -> Option<u64> {
                u64::try_from(self.time).ok()
            }

            /// They are its last 16 bytes in XCDR1 and XCDR2.
            fn read(serialized: &[u8]) -> Option<(u64, &[u8])> {
                let header = serialized.first_chunk::<4>()?;
                let (_, end) = serialized.get(4..)?.split_last_chunk::<16>()?;
                let (time, id) = end.split_first_chunk::<8>()?;
                is_little(*header).then_some((u64::from_le_bytes(id.try_into().ok()?), time))
            }
        })+
    };
}

stamped! {
    Octets { data } of octets;
    Struct16 { data } of struct16;
    Array64k { array } of array_64k;
    PointCloud1m { data } of point_cloud;
}

/// Bytes of a serialized sample of `load` in XCDR1, without the encapsulation header.
///
/// # Errors
/// It cannot be serialized.
pub(crate) fn serialized_bytes(load: Load) -> Result<u64, LabError> {
    match load {
        Load::Octets(_) => encoded_bytes::<Octets>(load),
        Load::Struct16 => encoded_bytes::<Struct16>(load),
        Load::Array64k => encoded_bytes::<Array64k>(load),
        Load::PointCloud1m => encoded_bytes::<PointCloud1m>(load),
    }
}

fn encoded_bytes<T: Carried>(load: Load) -> Result<u64, LabError> {
    const ENCAPSULATION_BYTES: usize = 4;
    let mut out = Vec::new();
    let sample = T::scheduled(load).ok_or_else(|| LabError::Here(format!("{load:?} is of another type")))?;
    encode(&sample, Representation::Xcdr1, &mut out).map_err(LabError::here)?;
    Ok((out.len() - ENCAPSULATION_BYTES) as u64)
}

fn octets(load: Load) -> Option<Octets> {
    let Load::Octets(bytes) = load else { return None };
    Some(Octets { data: vec![0; bytes as usize], time: 0, id: 0 })
}

fn struct16(load: Load) -> Option<Struct16> {
    (load == Load::Struct16).then_some(Struct16 { data: [0; 16], time: 0, id: 0 })
}

fn array_64k(load: Load) -> Option<Array64k> {
    (load == Load::Array64k).then(|| Array64k { array: zeroed(), time: 0, id: 0 })
}

fn point_cloud(load: Load) -> Option<PointCloud1m> {
    let field = |index: u32| PointField { name: format!("f{index}"), offset: 4 * index, datatype: 7, count: 1 };
    (load == Load::PointCloud1m).then(|| PointCloud1m {
        header: Header { frame_id: "lidar".to_owned(), ..Header::default() },
        height: 1,
        width: 32_768,
        fields: [0, 1, 2, 3, 4, 5, 6, 7].map(field),
        is_bigendian: false,
        point_step: 32,
        row_step: 1 << 20,
        data: zeroed(),
        is_dense: true,
        time: 0,
        id: 0,
    })
}

/// An array on the heap that was never on the stack, which has no room for the large ones.
fn zeroed<const N: usize>() -> Box<[u8; N]> {
    vec![0; N].into_boxed_slice().try_into().expect("the length is the array's")
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
    fn check<T: Carried>(load: Load, bytes: usize) {
        let mut sample = T::scheduled(load).expect("of this type");
        let content: Vec<u8> = (0..bytes).map(|index| index as u8).collect();
        sample.octets_mut().copy_from_slice(&content);
        sample.stamp(0x0102_0304_0506_0708, 77);
        assert_eq!((sample.number(), sample.time_ns()), (77, Some(0x0102_0304_0506_0708)));
        assert_eq!(sample.octets(), content);
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let mut out = Vec::new();
            encode(&sample, representation, &mut out).expect("encoded");
            assert_eq!(T::read(&out), Some((77, &0x0102_0304_0506_0708_u64.to_le_bytes()[..])));
            assert!((bytes + 16..bytes + 400).contains(&out.len()), "{} bytes", out.len());
        }
    }

    #[test]
    fn time_and_number_are_read_where_the_codec_writes_them() {
        for bytes in [0, 1, 5, 100, 1_003] {
            check::<Octets>(Load::Octets(bytes), bytes as usize);
        }
        check::<Struct16>(Load::Struct16, 16);
        check::<Array64k>(Load::Array64k, 65_536);
        check::<PointCloud1m>(Load::PointCloud1m, 1 << 20);
    }

    #[test]
    fn numbers_and_octets_are_read_where_the_codec_writes_them() {
        let sample = Numbered { number: 0x0102_0304_0506_0708, payload: vec![9, 8, 7] };
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let mut bytes = Vec::new();
            encode(&sample, representation, &mut bytes).expect("encoded");
            assert_eq!(Numbered::read(&bytes), Some((sample.number, sample.payload.as_slice())));
            for end in 0..bytes.len().min(19) {
                assert_eq!(Numbered::read(&bytes[..end]), None, "{end} bytes are no sample");
            }
        }
    }

    #[test]
    fn what_is_too_short_or_of_another_byte_order_is_no_sample() {
        let read = Struct16::read;
        assert!(read(&[0, 1, 0, 0]).is_none() && read(&[]).is_none() && read(&[0, 1, 0, 0, 9, 9]).is_none());
        assert!(read(&[0; 36]).is_none(), "big endian");
    }
}
