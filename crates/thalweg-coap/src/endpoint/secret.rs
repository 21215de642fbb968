//! Numbers that peers cannot guess.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};

/// The endpoint's secret, from its driver's entropy.
#[derive(Clone, Copy, Debug)]
pub struct EndpointSecret([u64; 2]);

impl EndpointSecret {
    pub fn new(key: [u64; 2]) -> EndpointSecret {
        EndpointSecret(key)
    }

    /// A keyed hash (SipHash): known results do not reveal another.
    pub fn hash(&self, value: impl Hash) -> u64 {
        let mut hasher = self.hasher();
        value.hash(&mut hasher);
        hasher.finish()
    }

    /// For values that are hashed piece by piece.
    pub fn hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher
    }
}

/// Hashes of the tables for addresses and message IDs: quick, and different in each process, so that peers cannot choose
/// keys that collide.
#[derive(Clone, Copy, Debug)]
pub struct TableState(u64);

impl TableState {
    pub fn new(secret: &EndpointSecret) -> TableState {
        TableState(secret.0[0] | 1)
    }
}

impl BuildHasher for TableState {
    type Hasher = TableHasher;

    fn build_hasher(&self) -> TableHasher {
        TableHasher(self.0)
    }
}

#[derive(Debug)]
pub struct TableHasher(u64);

impl Hasher for TableHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.write_u64(word.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            self.write_u64(rest.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        }
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        // The high half of the product depends on all bits of both factors.
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
