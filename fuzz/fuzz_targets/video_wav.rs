//! Any octets as a WAVE file: no panic, bounds hold, and a head that is written reads as it was meant.

#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_video::audio::CHANNELS_MAX;
use thalweg_video::wav;

fuzz_target!(|file: &[u8]| {
    let mut rest = file;
    let Ok(head) = wav::read_head(&mut rest) else { return };
    assert!((1..=CHANNELS_MAX).contains(&head.channels) && matches!(head.sample_octets, 2 | 3));
    assert_eq!(head.start, (file.len() - rest.len()) as u64);
    let samples: Vec<i32> = wav::samples(head.sample_octets, rest).collect();
    assert_eq!(samples.len(), rest.len() / usize::from(head.sample_octets));
    let mut octets = Vec::new();
    wav::write_samples(&samples, &mut octets);
    assert!(wav::samples(3, &octets).eq(samples.iter().copied()), "24 bits hold every sample");
    let written = wav::head(head.channels, head.data_octets);
    let again = wav::read_head(&mut &written[..]).expect("it was written by us");
    assert_eq!((again.channels, again.sample_octets, again.data_octets), (head.channels, 3, head.data_octets));
});
