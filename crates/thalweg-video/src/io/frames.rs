//! Frames prepared ahead of their time, so that a slow disk or picture never delays a packet.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use thalweg_transport::memory;
use thalweg_transport::stream::Waker;

use crate::source::{Filled, FrameSource, SourceError};

/// Frames that are used again once nobody else holds them.
///
/// A picture of 1080p in fresh memory costs 1,300 page faults, a frame time's twentieth.
pub(super) struct FramePool {
    frames: Vec<Arc<[u8]>>,
    /// Where to look first: the one that was taken longest ago.
    next: usize,
}

impl FramePool {
    pub(super) fn new(frame_octets: usize, count: usize) -> FramePool {
        FramePool { frames: (0..count).map(|_| memory::zeroed(frame_octets)).collect(), next: 0 }
    }

    /// The place of a frame that nobody else holds.
    pub(super) fn free(&mut self) -> Option<usize> {
        let count = self.frames.len();
        let place = (self.next..self.next + count)
            .map(|place| place % count)
            .find(|place| Arc::get_mut(&mut self.frames[*place]).is_some())?;
        self.next = place + 1;
        Some(place)
    }

    /// The octets of a free frame.
    ///
    /// # Panics
    ///
    /// Somebody else holds it.
    pub(super) fn octets(&mut self, place: usize) -> &mut [u8] {
        Arc::get_mut(&mut self.frames[place]).expect("the frame is free")
    }

    pub(super) fn share(&self, place: usize) -> Arc<[u8]> {
        Arc::clone(&self.frames[place])
    }
}

/// What a source had to give.
pub(super) enum Prepared {
    Frame(Arc<[u8]>),
    End,
    Failed(SourceError),
}

/// The receiving end of the frames that a thread prepares.
pub(super) struct PreparedFrames(Receiver<Prepared>);

impl PreparedFrames {
    /// The next frame, if it is ready; the end when its thread is gone.
    pub(super) fn take(&self) -> Option<Prepared> {
        match self.0.try_recv() {
            Ok(prepared) => Some(prepared),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Prepared::End),
        }
    }
}

/// The preparing end: [`Preparation::run`] belongs to a thread of its own.
pub(super) struct Preparation<'source> {
    source: &'source mut dyn FrameSource,
    frames_max: u64,
    pool: FramePool,
    ready: SyncSender<Prepared>,
    waker: Waker,
}

/// Prepares the first `frames_max` frames of `source`, a few ahead of their time; `waker` wakes who takes them. `held_max` frames may be
/// held at once by who took them.
pub(super) fn prepare(
    source: &mut dyn FrameSource,
    frames_max: u64,
    held_max: usize,
    waker: Waker,
) -> (Preparation<'_>, PreparedFrames) {
    let (ready, frames) = sync_channel(READY_MAX);
    // One more is being written, and one waits for room.
    let pool = FramePool::new(source.format().frame_octets(), held_max + READY_MAX + 2);
    (Preparation { source, frames_max, pool, ready, waker }, PreparedFrames(frames))
}

impl Preparation<'_> {
    /// Prepares frames until the source ends or nobody takes them any more.
    pub(super) fn run(mut self) {
        let mut last: Option<Arc<[u8]>> = None;
        for _ in 0..self.frames_max {
            let frame = match last {
                Some(frame) => frame,
                None => match self.fill() {
                    Ok(Some(frame)) => frame,
                    Ok(None) => break,
                    Err(error) => {
                        self.give(Prepared::Failed(error));
                        return;
                    }
                },
            };
            if !self.give(Prepared::Frame(Arc::clone(&frame))) {
                return;
            }
            // The pool would not write into a frame that is held.
            last = self.source.is_still().then_some(frame);
        }
        self.give(Prepared::End);
    }

    /// The next frame of the source; `None` at its end.
    fn fill(&mut self) -> Result<Option<Arc<[u8]>>, SourceError> {
        let place = loop {
            match self.pool.free() {
                Some(place) => break place,
                None => std::thread::sleep(NO_FRAME_PAUSE),
            }
        };
        let filled = self.source.fill(self.pool.octets(place))?;
        Ok((filled == Filled::Frame).then(|| self.pool.share(place)))
    }

    /// False when nobody takes it any more.
    fn give(&self, prepared: Prepared) -> bool {
        let is_taken = self.ready.send(prepared).is_ok();
        self.waker.wake();
        is_taken
    }
}

/// Frames that wait for their time.
const READY_MAX: usize = 2;
/// How long to wait for a frame that somebody holds for longer than was promised.
const NO_FRAME_PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FrameRate, PixelFormat, Scan, VideoFormat};
    use crate::io::{ControlPort, MediaOptions, MediaReceiver, MediaSocket};

    /// Numbers its frames, and is still from one on.
    struct Numbers {
        next: u8,
        end: u8,
        still_from: u8,
    }

    impl FrameSource for Numbers {
        fn format(&self) -> VideoFormat {
            VideoFormat::new(PixelFormat::Rgb8, (2, 1), FrameRate::PAL, Scan::Progressive).unwrap()
        }

        fn fill(&mut self, frame: &mut [u8]) -> Result<Filled, SourceError> {
            frame.fill(self.next);
            self.next += 1;
            Ok(if self.next > self.end { Filled::End } else { Filled::Frame })
        }

        fn is_still(&self) -> bool {
            self.next > self.still_from
        }
    }

    /// The numbers of the frames that come, of which the last `held` are kept.
    fn numbers(end: u8, frames_max: u64, held: usize) -> Vec<u8> {
        numbers_of(Numbers { next: 0, end, still_from: u8::MAX }, frames_max, held)
    }

    fn numbers_of(mut source: Numbers, frames_max: u64, held: usize) -> Vec<u8> {
        let options = MediaOptions { control: ControlPort::Multiplexed, ..MediaOptions::default() };
        let socket = MediaSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let waker = MediaReceiver::new(&[socket]).unwrap().waker();
        let (preparation, frames) = prepare(&mut source, frames_max, held, waker);
        std::thread::scope(|scope| {
            scope.spawn(|| preparation.run());
            let (mut kept, mut numbers) = (std::collections::VecDeque::new(), Vec::new());
            loop {
                match frames.take() {
                    None => std::thread::yield_now(),
                    Some(Prepared::Frame(frame)) => {
                        numbers.push(frame[0]);
                        kept.push_back((frame[0], frame));
                        if kept.len() > held {
                            kept.pop_front();
                        }
                        assert!(kept.iter().all(|(number, frame)| frame.iter().all(|octet| octet == number)));
                    }
                    Some(Prepared::End) => return numbers,
                    Some(Prepared::Failed(error)) => panic!("{error}"),
                }
            }
        })
    }

    #[test]
    fn frames_come_in_order_and_nobody_writes_into_one_that_is_held() {
        assert_eq!(numbers(200, u64::MAX, 4), (0..200).collect::<Vec<u8>>());
        assert_eq!(numbers(200, u64::MAX, 0), (0..200).collect::<Vec<u8>>());
    }

    #[test]
    fn a_source_that_is_still_is_not_asked_again() {
        let source = Numbers { next: 0, end: 3, still_from: 2 };
        assert_eq!(numbers_of(source, 6, 4), [0, 1, 2, 2, 2, 2], "a fourth frame would be its end");
    }

    #[test]
    fn no_more_frames_come_than_were_asked_for() {
        assert_eq!(numbers(200, 3, 1), [0, 1, 2]);
        assert_eq!(numbers(2, 3, 1), [0, 1]);
    }

    #[test]
    fn a_pool_gives_only_what_is_free() {
        let mut pool = FramePool::new(1, 2);
        let first = pool.free().unwrap();
        let held = pool.share(first);
        let second = pool.free().unwrap();
        assert_ne!(first, second);
        let other = pool.share(second);
        assert_eq!(pool.free(), None);
        drop(held);
        assert_eq!(pool.free(), Some(first));
        drop(other);
    }
}
