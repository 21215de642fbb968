//! Questions and answers of `thalweg why` with any payload: no panic, nothing kept beyond what one peer may tell.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg::explain::{kept_of_answer, topic_of_question};
use thalweg_rtps::types::GuidPrefix;

const OWN: GuidPrefix = GuidPrefix([1, 0xfb, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
const PEER: GuidPrefix = GuidPrefix([2, 0xfb, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);

/// An answer to the question that is open which goes on with `rest`.
fn answer(rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 9, 0, 0];
    bytes.extend_from_slice(&(24 + rest.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&OWN.0);
    [1u32, 0, 1].into_iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes.extend_from_slice(rest);
    bytes
}

fuzz_target!(|input: &[u8]| {
    let Some((which, payload)) = input.split_first() else { return };
    let kept = match which % 3 {
        0 => kept_of_answer(OWN, PEER, payload),
        1 => kept_of_answer(OWN, PEER, &answer(payload)),
        _ => {
            assert!(topic_of_question(payload).is_none_or(|topic| topic.len() <= 255));
            return;
        }
    };
    assert!(kept.writers.len() <= 1 && kept.readers.len() <= 1 && kept.participants.len() <= 1);
    let guids = kept.writers.iter().map(|told| told.guid).chain(kept.readers.iter().map(|told| told.guid));
    assert!(guids.into_iter().all(|guid| guid.prefix == PEER));
});
