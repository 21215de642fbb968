//! The samples of simulated applications: they contain their writer, their number and a checksum.

use std::sync::Arc;

use thalweg_rtps::history::PayloadKind;
use thalweg_rtps::participant::KeyOf;
use thalweg_rtps::payload::Payload;
use thalweg_rtps::types::KeyHash;

/// The content of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedSample {
    /// Owner of the instance: the writer, or zero when writers share instances.
    pub owner: u32,
    /// Instance within the owner's.
    pub instance: u8,
    /// Number of samples that its writer had written before.
    pub index: u32,
}

/// Encapsulation header of plain little-endian CDR.
const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];
/// Bytes of a sample without filling.
pub const SAMPLE_BYTES_MIN: usize = 16;
/// Bytes that tell the key, with the encapsulation header.
const KEY_BYTES: usize = 12;

impl SimulatedSample {
    /// The instance that the sample belongs to on a keyed topic.
    pub fn key(&self) -> KeyHash {
        let mut hash = [0; 16];
        hash[..4].copy_from_slice(&self.owner.to_be_bytes());
        hash[4] = self.instance;
        KeyHash(hash)
    }

    /// Serializes the sample, filled up to `bytes`.
    pub fn encode(&self, bytes: usize) -> Payload {
        let mut encoded = self.head();
        encoded.extend_from_slice(&self.index.to_le_bytes());
        let filling = (SAMPLE_BYTES_MIN..bytes).map(|place| filling(self.index, place));
        encoded.extend(filling);
        Payload::from(encoded)
    }

    /// Serializes the key.
    pub fn encode_key(&self) -> Payload {
        Payload::from(self.head())
    }

    fn head(&self) -> Vec<u8> {
        let mut encoded = ENCAPSULATION.to_vec();
        encoded.extend_from_slice(&self.owner.to_le_bytes());
        encoded.extend_from_slice(&[self.instance, 0, 0, 0]);
        encoded
    }

    /// Reads a sample, or tells how it is damaged. Up to three bytes of padding may follow.
    ///
    /// # Errors
    /// Its fault.
    pub fn decode(encoded: &[u8], bytes: usize) -> Result<SimulatedSample, String> {
        let bytes = bytes.max(SAMPLE_BYTES_MIN);
        if encoded.len() < bytes || encoded.len() > bytes.next_multiple_of(4) {
            return Err(format!("{} bytes instead of {bytes}", encoded.len()));
        }
        let key = SimulatedSample::decode_key(encoded).ok_or("no key")?;
        let index = u32::from_le_bytes([encoded[12], encoded[13], encoded[14], encoded[15]]);
        match (SAMPLE_BYTES_MIN..bytes).find(|place| encoded[*place] != filling(index, *place)) {
            Some(place) => Err(format!("byte {place} is damaged")),
            None => Ok(SimulatedSample { index, ..key }),
        }
    }

    /// Reads owner and instance of a sample or key.
    pub fn decode_key(encoded: &[u8]) -> Option<SimulatedSample> {
        let head = encoded.get(..KEY_BYTES)?;
        let owner = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        (head[..4] == ENCAPSULATION).then_some(SimulatedSample { owner, instance: head[8], index: 0 })
    }

    /// Reads the index of a sample; keys have none.
    pub fn index_in(encoded: &[u8]) -> Option<u32> {
        encoded.get(KEY_BYTES..SAMPLE_BYTES_MIN)?.try_into().ok().map(u32::from_le_bytes)
    }

    /// The key function of such samples.
    pub fn key_of() -> KeyOf {
        Arc::new(|encoded: &[u8], _: PayloadKind| SimulatedSample::decode_key(encoded).map(|sample| sample.key()))
    }
}

fn filling(index: u32, place: usize) -> u8 {
    (index as usize).wrapping_mul(31).wrapping_add(place.wrapping_mul(7)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_comes_back_and_shows_damage() {
        let sample = SimulatedSample { owner: 3, instance: 7, index: 1234 };
        for bytes in [0, 16, 17, 1_000] {
            let encoded = sample.encode(bytes);
            assert_eq!(SimulatedSample::decode(&encoded, bytes), Ok(sample));
            assert_eq!(SimulatedSample::decode_key(&encoded).map(|key| key.key()), Some(sample.key()));
        }
        let mut padded = sample.encode(17).to_vec();
        padded.extend_from_slice(&[0; 3]);
        assert_eq!(SimulatedSample::decode(&padded, 17), Ok(sample));
        padded[16] ^= 1;
        assert_eq!(SimulatedSample::decode(&padded, 17), Err("byte 16 is damaged".to_string()));
        assert!(SimulatedSample::decode(&padded[..16], 17).is_err());
        assert_eq!(SimulatedSample::decode_key(&sample.encode_key()).map(|key| key.key()), Some(sample.key()));
    }
}
