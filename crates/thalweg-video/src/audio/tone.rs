//! A tone for each channel, which a receiver recognizes sample by sample.

use std::f64::consts::TAU;

use super::format::{CHANNELS_MAX, SAMPLE_RATE_HZ};

/// Samples after which the tones of all channels repeat.
pub const TONE_PERIOD: usize = 960;

/// Samples of a wave of each channel: 1000, 500, 750, 250, 1500, 2000, 1200 and 800 Hz.
const WAVES: [usize; CHANNELS_MAX as usize] = [48, 96, 64, 192, 32, 24, 40, 60];

/// The loudness: 20 dB below the loudest.
const AMPLITUDE: f64 = 838_860.0;

/// The tones of some channels: each channel has its own.
#[derive(Clone, Debug)]
pub struct Tones {
    channels: usize,
    /// All samples of a period, the channels in turn.
    period: Vec<i32>,
}

impl Tones {
    /// Those of so many channels, [`CHANNELS_MAX`] at most.
    pub fn new(channels: usize) -> Tones {
        let channels = channels.min(WAVES.len());
        let wave = |place: usize, samples: usize| (place % samples) as f64 / samples as f64 * TAU;
        let set = |place: usize| {
            WAVES[..channels].iter().map(move |samples| (AMPLITUDE * wave(place, *samples).sin()).round() as i32)
        };
        Tones { channels, period: (0..TONE_PERIOD).flat_map(set).collect() }
    }

    /// The samples of all channels at a place, counted from any beginning.
    pub fn set(&self, place: u64) -> &[i32] {
        let place = (place % TONE_PERIOD as u64) as usize;
        &self.period[place * self.channels..][..self.channels]
    }

    /// The frequency of a channel's tone in hertz.
    pub fn frequency_hz(channel: usize) -> Option<u32> {
        let samples = u32::try_from(*WAVES.get(channel)?).ok()?;
        Some(SAMPLE_RATE_HZ / samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_channel_has_a_tone_of_its_own_and_no_two_packets_are_alike() {
        let tones = Tones::new(8);
        assert_eq!(
            (0..8).filter_map(Tones::frequency_hz).collect::<Vec<_>>(),
            [1000, 500, 750, 250, 1500, 2000, 1200, 800]
        );
        let packet = |place: u64| (place..place + 6).flat_map(|place| tones.set(place)).copied().collect();
        let packets: std::collections::HashSet<Vec<i32>> = (0..TONE_PERIOD as u64).map(packet).collect();
        assert_eq!(packets.len(), TONE_PERIOD);
        assert_eq!(tones.set(5), tones.set(5 + TONE_PERIOD as u64));
        let loudest = tones.period.iter().map(|sample| sample.abs()).max();
        assert_eq!(loudest, Some(838_860));
    }
}
