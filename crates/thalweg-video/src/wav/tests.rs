//! Heads of files, and what is refused.

use super::*;

fn check(octets: &[u8], expect: &str) {
    let got = match read_head(&mut &octets[..]) {
        Ok(head) => format!("{} of {} from {}, {:?}", head.channels, head.sample_octets, head.start, head.data_octets),
        Err(error) => error.to_string(),
    };
    assert!(got.contains(expect), "{got}, and not {expect}");
}

#[test]
fn a_head_reads_as_it_was_written() {
    check(&head(1, Some(300)), "1 of 3 from 44, Some(300)");
    check(&head(2, None), "2 of 3 from 44, None");
    check(&head(8, Some(240)), "8 of 3 from 68, Some(240)");
    assert_eq!(head(2, Some(7))[4..8], 44_u32.to_le_bytes(), "a chunk of odd length is filled up");
}

#[test]
fn chunks_of_others_are_passed_over() {
    let head = head(2, Some(12));
    let with = |chunk: &[u8]| [&head[..36], chunk, &head[36..]].concat();
    check(&with(b"LIST\x03\0\0\0abc\0"), "2 of 3 from 56, Some(12)");
    check(&with(b"LIST\xff\xff\xff\xfe"), "does not tell the form");
    check(&with(b"LIST\x03\0\0\0a"), "cannot be read");
    check(&head[..40], "cannot be read");
}

#[test]
fn what_is_not_sent_as_it_is_is_refused_with_a_remedy() {
    let with = |at: usize, octets: &[u8]| {
        let mut head = head(2, Some(12));
        head[at..at + octets.len()].copy_from_slice(octets);
        head
    };
    check(b"OggS........", "no WAVE file");
    check(&with(8, b"AVI "), "no WAVE file");
    check(&with(12, b"data"), "does not tell the form");
    check(&with(16, &[0xff, 0xff]), "does not tell the form");
    check(&with(20, &[3, 0]), "form 3 are not linear");
    check(&with(22, &[9, 0]), "9 channels");
    check(&with(24, &44_100_u32.to_le_bytes()), "44100 samples a second instead of 48000");
    check(&with(34, &[32, 0]), "32 bits");
}

#[test]
fn samples_keep_every_bit() {
    let sent = [0, 1, -1, 0x7f_ffff, -0x80_0000, 0x12_3456];
    let mut octets = Vec::new();
    write_samples(&sent, &mut octets);
    assert_eq!(samples(3, &octets).collect::<Vec<_>>(), sent);
    assert_eq!(samples(2, &[0x34, 0x12, 0xff, 0xff, 9]).collect::<Vec<_>>(), [0x12_3400, -0x100]);
}
