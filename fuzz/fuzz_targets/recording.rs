//! Files of recordings: no panic, no memory beyond what the file has and the limit allows, and definitions that are read can be told.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use thalweg_recording::read::{Entry, RecordingReader, indexed_channels};
use thalweg_recording::schema::TypeSchema;

/// Bytes of a record or chunk.
const LIMIT: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let mut reader = RecordingReader::with_limit(input, LIMIT);
    while let Ok(Some(entry)) = reader.read_entry() {
        match entry {
            Entry::Message { data, .. } => assert!(data.len() <= LIMIT),
            Entry::InstanceEnd { end, .. } => drop(end.key_bytes()),
            Entry::Summary(summary) => drop(summary.to_string()),
        }
    }
    // The same content is read with and without checks.
    let mut audited = RecordingReader::audited(input, LIMIT);
    while let Ok(Some(_)) = audited.read_entry() {}
    let _ = audited.structure_faults();
    for channel in reader.channels() {
        let Ok(writer) = &channel.writer else { continue };
        for rate in [0.001, 1.0, 1000.0] {
            let _ = writer.qos.to_writer_qos(rate);
        }
        if let Some(Ok(Some(of))) = writer.schema.as_deref().map(TypeSchema::to_type) {
            let _ = TypeSchema::of(&writer.type_name, &of);
        }
    }
    let _ = indexed_channels(&mut Cursor::new(input));
});
