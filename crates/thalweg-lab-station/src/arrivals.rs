//! The fate of every numbered sample at a reader.

/// Which of the samples 0, 1, 2, … arrived, how often and in which order; one bit a sample.
#[derive(Clone, Debug, Default)]
pub struct ArrivalBitmap {
    seen: Vec<u64>,
    next: u64,
    received: u64,
    duplicates: u64,
    out_of_order: u64,
    impossible: u64,
}

impl ArrivalBitmap {
    /// No arrivals yet; there is room for `count` samples, at most half a billion, before memory has to be found for more.
    pub fn with_room_for(count: u64) -> ArrivalBitmap {
        let words = count.min(ROOM_MAX) / 64 + 1;
        ArrivalBitmap { seen: Vec::with_capacity(words as usize), ..ArrivalBitmap::default() }
    }

    /// Notes that sample `number` arrived.
    pub fn note(&mut self, number: u64) {
        if number >= NUMBERS_MAX {
            self.impossible += 1;
            return;
        }
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            self.duplicates += 1;
            return;
        }
        self.seen[word] |= bit;
        self.received += 1;
        if number < self.next {
            self.out_of_order += 1;
        }
        self.next = self.next.max(number + 1);
    }

    /// Different samples that arrived.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Arrivals of a sample that had arrived before.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Samples that arrived after a later one.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// The fault of the arrivals of a reliable, ordered writer that sent `sent` samples; `None` without one.
    pub fn fault(&self, sent: u64) -> Option<String> {
        let faults = [
            (sent.saturating_sub(self.received), "never arrived"),
            (self.duplicates, "arrived twice"),
            (self.out_of_order, "arrived after a later one"),
            (self.impossible + self.received.saturating_sub(sent), "were never sent"),
        ];
        let told: Vec<String> =
            faults.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        (!told.is_empty()).then(|| format!("of {sent} samples {}", told.join(", ")))
    }
}

/// Numbers beyond this come from damaged samples: at a million samples a second they would take 19 hours.
const NUMBERS_MAX: u64 = 1 << 36;
/// Room requested at once: 64 MiB, which take memory only as far as they are used.
const ROOM_MAX: u64 = 1 << 29;

#[cfg(test)]
mod tests {
    use super::ArrivalBitmap;

    #[track_caller]
    fn check(numbers: &[u64], sent: u64, expect: Option<&str>) {
        let mut arrivals = ArrivalBitmap::default();
        numbers.iter().for_each(|number| arrivals.note(*number));
        assert_eq!(arrivals.fault(sent).as_deref(), expect, "{numbers:?}");
    }

    #[test]
    fn every_fate_is_told_apart() {
        check(&[0, 1, 2], 3, None);
        check(&[], 0, None);
        check(&[1, 2], 3, Some("of 3 samples 1 never arrived"));
        check(&[0, 1], 3, Some("of 3 samples 1 never arrived"));
        check(&[0, 0, 1, 2], 3, Some("of 3 samples 1 arrived twice"));
        check(&[1, 0, 2], 3, Some("of 3 samples 1 arrived after a later one"));
        check(&[0, 1, 2, 3], 3, Some("of 3 samples 1 were never sent"));
        check(&[0, u64::MAX], 1, Some("of 1 samples 1 were never sent"));
    }

    #[test]
    fn a_late_sample_is_received_and_not_a_duplicate() {
        let mut arrivals = ArrivalBitmap::default();
        [0, 2, 1, 1, 200, 100].into_iter().for_each(|number| arrivals.note(number));
        assert_eq!((arrivals.received(), arrivals.duplicates(), arrivals.out_of_order()), (5, 1, 2));
    }
}
