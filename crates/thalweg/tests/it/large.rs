//! Samples of more than one datagram.

use crate::fixture::*;

fn sample(bytes: usize) -> Shape {
    let payload = (0..bytes).map(|index| (index.wrapping_mul(2_654_435_761) >> 7) as u8).collect();
    Shape { payload, ..Shape::new("LARGE", bytes as i32) }
}

#[test]
fn samples_of_every_size_arrive_whole() {
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("sizes", reliable_writer(), reliable_reader());
    for bytes in [1, 1_000, 1_473, 60_000, 64_900, 65_000, 65_536, 131_072, 1_000_003, 5_000_000] {
        let expect = sample(bytes);
        writer.write(&expect).unwrap();
        let received = take(&reader, 1);
        assert!(received[0].data().unwrap() == expect, "{bytes} bytes");
    }
}

#[test]
fn large_and_small_samples_keep_their_order() {
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("mixed", reliable_writer(), reliable_reader());
    let sizes: Vec<usize> = (0..40).map(|index| if index % 4 == 0 { 300_000 } else { index }).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| sizes.iter().for_each(|bytes| _ = writer.write(&sample(*bytes)).unwrap()));
        for (received, bytes) in take(&reader, sizes.len()).iter().zip(&sizes) {
            assert!(received.data().unwrap() == sample(*bytes), "{bytes} bytes");
        }
    });
}
