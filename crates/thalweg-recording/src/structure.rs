//! What the end of a file says of the records before it.

use std::hash::{DefaultHasher, Hash, Hasher};

use mcap::records::op;

use crate::records;

/// The records of a file as they are met, in constant memory.
#[derive(Debug)]
pub struct FileStructure {
    /// Where the next record begins.
    place: u64,
    messages: u64,
    chunks: Places,
    indexed: Places,
    /// Messages and chunks, as the statistics tell.
    told: Option<[u64; 2]>,
}

/// Where chunks begin and how long they are, whatever their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Places {
    count: u64,
    sum: u64,
}

impl Places {
    fn add(&mut self, start: u64, bytes: u64) {
        let mut hasher = DefaultHasher::new();
        (start, bytes).hash(&mut hasher);
        self.count += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

impl FileStructure {
    pub fn new() -> FileStructure {
        let place = mcap::MAGIC.len() as u64;
        let (chunks, indexed) = (Places::default(), Places::default());
        FileStructure { place, messages: 0, chunks, indexed, told: None }
    }

    /// Takes the next record of the file into account.
    pub fn see(&mut self, opcode: u8, record: &[u8]) {
        let bytes = records::HEAD_BYTES + record.len() as u64;
        match opcode {
            op::CHUNK => self.chunks.add(self.place, bytes),
            op::CHUNK_INDEX => {
                if let Some((start, bytes)) = records::indexed_chunk(record) {
                    self.indexed.add(start, bytes);
                }
            }
            op::STATISTICS => self.told = records::counts(record),
            _ => {}
        }
        self.place += bytes;
    }

    /// Takes a message into account, whether it lies in a chunk or not.
    pub fn see_message(&mut self) {
        self.messages += 1;
    }

    /// In what a whole file's end differs from what it has.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let Some([messages, chunks]) = self.told {
            let counts = [(messages, self.messages, "messages"), (chunks, self.chunks.count, "chunks")];
            for (told, met, what) in counts {
                if told != met {
                    faults.push(format!("its statistics tell of {told} {what}, and it has {met}"));
                }
            }
        }
        // An index may be left out, but not in part.
        if self.indexed.count > 0 && self.indexed != self.chunks {
            let (indexed, chunks) = (self.indexed.count, self.chunks.count);
            faults.push(format!("its index of {indexed} chunks does not lead to its {chunks} chunks"));
        }
        faults
    }
}
