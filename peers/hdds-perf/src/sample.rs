//! `final struct { uint64 number; sequence<octet> bytes; }`. hdds announces every type under one name per Rust type.

use hdds::Error;
use hdds::core::types::TypeDescriptor;
use hdds::dds::DDS;
use peer_protocol::{NumberedSample, ScheduledSample, TYPE_NAME};

/// Number and length, before the bytes.
const HEADER: usize = 12;

pub struct Sample {
    pub number: u64,
    pub bytes: Vec<u8>,
}

impl ScheduledSample for Sample {
    fn stamp(&mut self, time_ns: u64, id: u64) {
        self.number = id;
        if let Some(time) = self.bytes.first_chunk_mut() {
            *time = time_ns.to_le_bytes();
        }
    }

    fn octets_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl NumberedSample for Sample {
    fn of(bytes: Vec<u8>) -> Sample {
        Sample { number: 0, bytes }
    }

    fn set_number(&mut self, number: u64) {
        self.number = number;
    }

    fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl DDS for Sample {
    fn type_descriptor() -> &'static TypeDescriptor {
        static DESCRIPTOR: TypeDescriptor = TypeDescriptor {
            type_id: 0x7468_616c,
            type_name: TYPE_NAME,
            size_bytes: 0,
            alignment: 8,
            is_variable_size: true,
            fields: &[],
        };
        &DESCRIPTOR
    }

    fn encode_cdr2(&self, buffer: &mut [u8]) -> hdds::dds::Result<usize> {
        let length = HEADER + self.bytes.len();
        let buffer = buffer.get_mut(..length).ok_or(Error::BufferTooSmall)?;
        buffer[..8].copy_from_slice(&self.number.to_le_bytes());
        buffer[8..HEADER].copy_from_slice(&(self.bytes.len() as u32).to_le_bytes());
        buffer[HEADER..].copy_from_slice(&self.bytes);
        Ok(length)
    }

    fn decode_cdr2(buffer: &[u8]) -> hdds::dds::Result<Sample> {
        let (number, rest) = buffer.split_first_chunk().ok_or(Error::SerializationError)?;
        let (length, rest) = rest.split_first_chunk().ok_or(Error::SerializationError)?;
        let length = u32::from_le_bytes(*length) as usize;
        let bytes = rest.get(..length).ok_or(Error::SerializationError)?.to_vec();
        Ok(Sample { number: u64::from_le_bytes(*number), bytes })
    }
}
