//! What a lab agent hears, before and after it knows the other side: no panic, the same frames in any pieces, nothing kept beyond
//! what came, nothing forged taken.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_lab::agent::frames::Frames;
use thalweg_lab::agent::seal::pair;
use thalweg_lab::agent::understands;

const MOST: usize = 512;

/// The frames in `pieces`, and whether the stream could be taken apart to its end.
fn frames<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, bool) {
    let mut frames = Frames::new(MOST);
    let (mut out, mut came) = (Vec::new(), 0);
    for piece in pieces {
        frames.add(piece);
        came += piece.len();
        loop {
            match frames.take() {
                Ok(Some(frame)) => {
                    assert!((1..=MOST).contains(&frame.len()));
                    came -= 4 + frame.len();
                    out.push(frame);
                }
                Ok(None) => break,
                Err(_) => return (out, false),
            }
        }
        assert_eq!(frames.pending_bytes(), came);
        assert!(came < 4 + MOST);
    }
    (out, true)
}

fuzz_target!(|input: &[u8]| {
    let Some((size, stream)) = input.split_first() else { return };
    let whole = frames(std::iter::once(stream));
    if whole.1 {
        assert_eq!(whole, frames(stream.chunks(1 + usize::from(*size))));
    }
    let Ok((mut sealer, mut opener)) = pair() else { return };
    for frame in &whole.0 {
        understands(frame);
        assert!(opener.open(frame).is_err(), "nobody sealed this");
        let sealed = sealer.seal(frame);
        assert_eq!(opener.open(&sealed).as_ref(), Ok(frame));
        assert!(opener.open(&sealed).is_err(), "repeated");
    }
});
