//! Datagrams at the receiver of a probe, as steps of nine bytes: how the number moves, whether the datagram is damaged, and its times.
//! No panic; every arrival has one fate; what is counted is what a model with unlimited memory counts, wherever the window can tell.

#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_probe::account::{ArrivalCounts, Arrivals, DatagramHeader, HEADER_BYTES, WINDOW};

const TOKEN: u32 = 0x7061_7468;
const SIZE: usize = 20;

fuzz_target!(|bytes: &[u8]| {
    let mut arrivals = Arrivals::new(TOKEN, SIZE);
    let mut model = ArrivalCounts::default();
    let mut seen = HashSet::new();
    let (mut number, mut now) = (0_u64, 0_u64);
    for step in bytes.chunks_exact(9) {
        let (operation, rest) = (step[0], &step[1..]);
        let value = u64::from_le_bytes(rest.try_into().expect("eight bytes"));
        number = match operation % 6 {
            0 | 1 => number.wrapping_add(1),
            2 => number.wrapping_add(value % (3 * WINDOW)),
            3 => number.wrapping_sub(value % (2 * WINDOW)),
            4 => number,
            _ => value,
        };
        now = now.wrapping_add(value >> 40);
        let token = if operation & 0x80 == 0 { TOKEN } else { value as u32 };
        let mut datagram = [0; SIZE];
        datagram[..HEADER_BYTES].copy_from_slice(&DatagramHeader { number, token, sent_us: value as u32 }.to_wire());
        let length = if operation & 0x40 == 0 { SIZE } else { usize::from(operation) % SIZE };
        arrivals.handle_datagram(Instant::from_nanos(now), &datagram[..length]);
        let is_ours = token == TOKEN && length == SIZE && number < u64::MAX;
        if !is_ours {
            model.foreign += 1;
        } else if number < model.next && model.next - number > WINDOW {
            model.outdated += 1;
        } else if !seen.insert(number) {
            model.duplicates += 1;
        } else {
            model.received += 1;
            model.bytes += SIZE as u64;
            model.reordered += u64::from(number < model.next);
            model.next = model.next.max(number + 1);
        }
    }
    assert_eq!(arrivals.counts(), model);
    assert!(arrivals.jitter_us() >= 0.0 && arrivals.jitter_us().is_finite());
    assert_eq!(arrivals.span().is_some(), model.received > 0);
});
