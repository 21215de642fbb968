//! The octets of a burst: the samples themselves, or larger ones in which an application packs several of them.

use crate::fault::Fault;

use super::{BurstNumber, BurstRequest, ENQUIRY};

/// What a run consists of, told before its time begins: three `u32`, little-endian. The third may be missing; then only the ends of
/// samples are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Announcement {
    /// Samples that travel.
    pub(super) count: u32,
    /// Octets of each; of the samples in them where the application packs.
    pub(super) size: u32,
    /// Samples that the application packed into those that travel, 0 where it does not pack; `None` where nothing is said of the
    /// octets between a sample's ends.
    pub(super) packed: Option<u32>,
}

impl Announcement {
    pub(super) fn on_wire(self) -> Vec<u8> {
        [self.count, self.size].into_iter().chain(self.packed).flat_map(u32::to_le_bytes).collect()
    }

    pub(super) fn from_wire(bytes: &[u8]) -> Option<Announcement> {
        let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        Some(Announcement { count: word(0)?, size: word(4)?, packed: word(8) })
    }

    fn is_packed(&self) -> bool {
        self.packed.is_some_and(|packed| packed > 0)
    }

    /// The fault of a sample that travelled; `packed` is the number of the next packed one, and `is_whole` asks for a look at every
    /// octet.
    pub(super) fn check(&self, number: BurstNumber, bytes: &[u8], packed: &mut u32, is_whole: bool) -> Option<String> {
        if self.is_packed() {
            return self
                .unpack(bytes, packed, is_whole)
                .is_none()
                .then(|| format!("sample {} is damaged within sample {}", *packed, number.index));
        }
        if bytes.len() != self.size as usize {
            return Some(format!("sample {} has {} bytes instead of {}", number.index, bytes.len(), self.size));
        }
        let byte = number.check_byte();
        let is_altered = [bytes.first(), bytes.last()].into_iter().flatten().any(|end| *end != byte);
        let is_altered = is_altered
            || is_whole && self.packed.is_some() && !counts_up(bytes.get(1..bytes.len().saturating_sub(1)), 1);
        is_altered.then(|| format!("sample {} arrived altered", number.index))
    }

    /// Takes a sample apart that several were packed into; `None` unless each has the expected number and all its octets.
    fn unpack(&self, mut bytes: &[u8], next: &mut u32, is_whole: bool) -> Option<()> {
        while !bytes.is_empty() {
            let (number, rest) = bytes.split_first_chunk::<4>()?;
            let (length, rest) = rest.split_first_chunk::<4>()?;
            let (sample, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            let is_right = u32::from_le_bytes(*number) == *next && sample.len() == self.size as usize;
            if !is_right || is_whole && !counts_up(Some(sample), 0) {
                return None;
            }
            std::hint::black_box(sample);
            *next += 1;
            bytes = rest;
        }
        Some(())
    }
}

fn counts_up(bytes: Option<&[u8]>, first: u8) -> bool {
    bytes.unwrap_or_default().iter().enumerate().all(|(index, byte)| *byte == (index as u8).wrapping_add(first))
}

/// The samples of a run.
pub(super) struct BurstContent {
    pub(super) announcement: Announcement,
    /// Packed samples in each that travels.
    per_sample: u32,
    /// The octets of one sample, which count up.
    bytes: Vec<u8>,
}

impl BurstContent {
    /// As the request says.
    pub(super) fn new(request: &BurstRequest) -> Result<BurstContent, Fault> {
        let (n, size) = (request.n, request.size);
        if n == 0 || n >= ENQUIRY {
            return Err(Fault::Here(format!("a run has 1 to {} samples, not {n}", ENQUIRY - 1)));
        }
        let bytes = (0..size).map(|index| index as u8).collect();
        if request.wrap_bytes == 0 {
            let announcement = Announcement { count: n, size, packed: Some(0) };
            return Ok(BurstContent { announcement, per_sample: 0, bytes });
        }
        let fitting = request.wrap_bytes / (u64::from(size) + PACKING_BYTES);
        let per_sample = u32::try_from(fitting).unwrap_or(u32::MAX).clamp(1, n);
        let announcement = Announcement { count: n.div_ceil(per_sample), size, packed: Some(n) };
        Ok(BurstContent { announcement, per_sample, bytes })
    }

    /// Makes the first sample.
    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        out.clear();
        if !self.announcement.is_packed() {
            out.extend_from_slice(&self.bytes);
        }
    }

    /// Makes the sample with this number out of the one before it.
    pub(super) fn prepare(&self, number: BurstNumber, out: &mut Vec<u8>) {
        if !self.announcement.is_packed() {
            let byte = number.check_byte();
            if let [first, .., last] = out.as_mut_slice() {
                (*first, *last) = (byte, byte);
            } else if let [only] = out.as_mut_slice() {
                *only = byte;
            }
            return;
        }
        out.clear();
        let first = number.index * self.per_sample;
        for index in first..first.saturating_add(self.per_sample).min(self.announcement.packed.unwrap_or(0)) {
            // An application's own format needs the number and the end of each sample.
            out.extend_from_slice(&index.to_le_bytes());
            out.extend_from_slice(&(self.bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(&self.bytes);
        }
    }
}

/// Octets of the number and the length before each packed sample.
const PACKING_BYTES: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Octets of all samples of a run that travel.
    fn travelling(request: &BurstRequest) -> (Announcement, Vec<Vec<u8>>) {
        let content = BurstContent::new(request).expect("possible");
        let mut out = Vec::new();
        content.begin(&mut out);
        let sample = |index| {
            content.prepare(BurstNumber::new(1, index), &mut out);
            out.clone()
        };
        (content.announcement, (0..content.announcement.count).map(sample).collect())
    }

    #[test]
    fn an_announcement_survives_the_wire_and_may_lack_its_third_word() {
        let announcement = Announcement { count: 3, size: 0x0102_0304, packed: Some(9) };
        assert_eq!(Announcement::from_wire(&announcement.on_wire()), Some(announcement));
        let short = Announcement::from_wire(&announcement.on_wire()[..8]);
        assert_eq!(short, Some(Announcement { packed: None, ..announcement }));
        assert_eq!(Announcement::from_wire(&[0; 7]), None);
    }

    #[test]
    fn every_octet_of_a_sample_is_looked_at_when_asked_for() {
        let (announcement, samples) = travelling(&BurstRequest { n: 3, size: 300, ..BurstRequest::default() });
        for (index, sample) in samples.iter().enumerate() {
            let number = BurstNumber::new(1, index as u32);
            assert_eq!(announcement.check(number, sample, &mut 0, true), None);
            let mut altered = sample.clone();
            altered[150] ^= 1;
            assert_eq!(announcement.check(number, &altered, &mut 0, false), None, "only the ends are looked at");
            assert!(announcement.check(number, &altered, &mut 0, true).is_some());
            let of_another = Announcement { packed: None, ..announcement };
            assert_eq!(
                of_another.check(number, &altered, &mut 0, true),
                None,
                "who says nothing of them may fill them"
            );
        }
    }

    #[test]
    fn packed_samples_come_out_as_they_went_in() {
        let request = BurstRequest { n: 10, size: 100, wrap_bytes: 450, ..BurstRequest::default() };
        let (announcement, samples) = travelling(&request);
        assert_eq!((announcement.count, announcement.packed), (3, Some(10)), "four of 108 bytes fit into 450");
        let mut next = 0;
        for sample in &samples {
            assert_eq!(announcement.check(BurstNumber::new(1, 0), sample, &mut next, true), None);
        }
        assert_eq!(next, 10);
        let check = |bytes: &[u8], mut next: u32| announcement.check(BurstNumber::new(1, 2), bytes, &mut next, true);
        assert!(check(&samples[2], 0).is_some(), "the wrong number");
        assert!(check(&samples[2][..samples[2].len() - 1], 8).is_some(), "cut off");
    }

    #[test]
    fn a_run_of_nothing_is_refused() {
        assert!(BurstContent::new(&BurstRequest { n: 0, size: 1, ..BurstRequest::default() }).is_err());
    }
}
