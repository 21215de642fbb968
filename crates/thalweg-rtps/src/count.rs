//! The counters by which repeated HEARTBEATs, ACKNACKs and their like are told from new ones.

/// Counts grow by serial-number arithmetic, so that they may wrap (RTPS 2.5 §8.3.8.1).
pub(crate) fn accept_count(last: &mut Option<u32>, count: u32) -> bool {
    let newer = last.is_none_or(|last| count.wrapping_sub(last).wrapping_sub(1) < u32::MAX / 2);
    if newer {
        *last = Some(count);
    }
    newer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_wrap_but_not_repeat() {
        let mut last = None;
        for (count, accepted) in [(5, true), (5, false), (4, false), (6, true), (u32::MAX - 1, false)] {
            assert_eq!(accept_count(&mut last, count), accepted, "count {count}");
        }
        let mut last = Some(u32::MAX);
        assert!(accept_count(&mut last, 1));
    }
}
