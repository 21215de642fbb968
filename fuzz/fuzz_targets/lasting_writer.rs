//! A writer whose history outlives it: whatever it writes, ends, acknowledges and restores, a store that does what it is told holds what
//! the history holds, a sample leaves it only after those that replace it, and no number is used twice.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_rtps::history::{ChangeKind, StoredChange};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::qos::{Durability, DurabilityService, History, ResourceLimits, WriterQos};
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{EntityId, Guid, GuidPrefix, KeyHash, Keyed, SequenceNumber};
use thalweg_rtps::writer::{NewChange, Writer, WriterOptions};

/// Numbers set aside at a time.
const AHEAD: i64 = 8;

struct Life {
    writer: Writer,
    stored: BTreeMap<SequenceNumber, StoredChange>,
    reserved: SequenceNumber,
    now: Instant,
}

impl Life {
    fn begin(qos: &WriterQos, stored: BTreeMap<SequenceNumber, StoredChange>, used: SequenceNumber) -> Life {
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, Keyed::Yes));
        let mut writer = Writer::new(guid, qos.clone().into(), &WriterOptions::default());
        let reserved = used + AHEAD;
        writer.begin_journal(reserved);
        writer.restore(Instant::ZERO, None, stored.values().cloned().collect(), used);
        assert!(writer.is_stored());
        Life { writer, stored, reserved, now: Instant::ZERO }
    }

    fn write(&mut self, kind: ChangeKind, instance: u8, bytes: usize) {
        let payload = Payload::from(vec![instance; bytes + 4]);
        let change = NewChange { kind, instance: KeyHash([instance; 16]), timestamp: None, payload };
        let before = self.writer.last();
        match self.writer.write(self.now, change) {
            Ok(written) => assert!(written.sequence > before && written.sequence <= self.reserved),
            Err(_) => assert_eq!(self.writer.last(), before),
        }
    }

    fn store(&mut self) {
        let records = self.writer.take_records();
        self.reserved = self.reserved.max(self.writer.last() + AHEAD);
        if let Some(records) = records {
            for change in records.added {
                assert!(self.stored.insert(change.sequence, change).is_none(), "stored twice");
            }
            for gone in records.removed {
                assert!(self.stored.remove(&gone).is_some(), "removed and never stored");
            }
        }
        self.writer.note_stored(self.writer.last(), self.reserved);
        assert!(self.writer.is_stored() && !self.writer.has_records());
        assert_eq!(self.stored.len(), self.writer.held());
    }
}

fn history(byte: u8) -> History {
    if byte % 4 == 0 { History::KeepAll } else { History::KeepLast(u32::from(byte % 4)) }
}

fuzz_target!(|data: &[u8]| {
    let Some((&[own, kept, samples, delay], steps)) = data.split_first_chunk() else { return };
    let limit = |byte: u8| (byte > 0).then_some(u32::from(byte).max(4));
    let durability_service = DurabilityService {
        cleanup_delay: Duration::from_millis(u64::from(delay)),
        history: history(kept),
        resource_limits: ResourceLimits { max_samples: limit(samples), ..ResourceLimits::default() },
    };
    let resource_limits = ResourceLimits { max_samples: limit(samples / 2), ..ResourceLimits::default() };
    let durability = Durability::Persistent;
    let qos =
        WriterQos { durability, durability_service, history: history(own), resource_limits, ..WriterQos::default() };
    if qos.check().is_err() {
        return;
    }
    let mut life = Life::begin(&qos, BTreeMap::new(), SequenceNumber::ZERO);
    for step in steps.chunks_exact(2).take(400) {
        match step[0] % 8 {
            0..3 => life.write(ChangeKind::Write, step[1] % 5, usize::from(step[1])),
            3 => life.write(ChangeKind::Dispose, step[1] % 5, 4),
            4 => life.write(ChangeKind::DisposeUnregister, step[1] % 5, 4),
            5 => {
                life.now += Duration::from_millis(u64::from(step[1]));
                life.writer.handle_timeout(life.now);
            }
            6 => life.store(),
            // Killed: what was not stored is gone, and numbers go on behind those that were set aside.
            _ => {
                let now = life.now;
                life = Life::begin(&qos, life.stored, life.reserved);
                life.now = now;
            }
        }
    }
});
