//! How much of a measurement belongs to its beginning.

/// How many of the first values to drop because what follows them is steadier (MSER-5, White 1997): the number, in steps of five, after
/// which the standard error of the mean of the rest is smallest. At most 30 %, so that a series that never settles keeps most of itself.
pub fn unsettled(values: &[f64]) -> usize {
    let batches: Vec<f64> = values.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    let most = batches.len() * 3 / 10;
    let squared_error = |dropped: &usize| {
        let rest = &batches[*dropped..];
        let count = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / count;
        rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count * count)
    };
    let errors = (0..=most).map(|dropped| (dropped, squared_error(&dropped)));
    errors.min_by(|(_, one), (_, other)| one.total_cmp(other)).map_or(0, |(dropped, _)| dropped * BATCH)
}

const BATCH: usize = 5;

#[cfg(test)]
mod tests {
    use super::unsettled;
    use thalweg_base::rng::Rng;

    /// `count` values around `level`, each up to 1 away.
    fn noise(random: &mut Rng, count: usize, level: f64) -> Vec<f64> {
        (0..count).map(|_| level + random.below(2_001) as f64 / 1_000.0 - 1.0).collect()
    }

    #[test]
    fn a_beginning_of_another_level_is_dropped_and_nothing_else() {
        let mut random = Rng::new(5);
        for _ in 0..50 {
            let mut values = noise(&mut random, 40, 9.0);
            values.extend(noise(&mut random, 160, 0.0));
            let dropped = unsettled(&values);
            assert!((40..=60).contains(&dropped), "{dropped}");
        }
    }

    #[test]
    fn what_never_settles_or_is_steady_or_short_keeps_most_of_itself() {
        let falling: Vec<f64> = (0..200).map(|index| 200.0 - f64::from(index)).collect();
        assert_eq!(unsettled(&falling), 60);
        assert_eq!(unsettled(&[1.0; 200]), 0);
        assert_eq!((unsettled(&[]), unsettled(&[5.0, 1.0, 1.0])), (0, 0));
    }
}
