//! Numbers with a unit on the command line.

use std::time::Duration;

/// A duration in seconds, fractions allowed.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds is needed, such as 2.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "seconds cannot be negative or beyond all bounds".to_owned())
}

/// Samples a second; 0 means no limit.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "a number of samples a second is needed, such as 0.5".to_owned())?;
    if rate.is_finite() && rate >= 0.0 { Ok(rate) } else { Err("a rate is 0 or more samples a second".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_rates_are_possible_ones() {
        assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2_500)));
        assert!(seconds("-1").is_err() && seconds("inf").is_err() && seconds("soon").is_err());
        assert_eq!(rate("0"), Ok(0.0));
        assert!(rate("-1").is_err() && rate("NaN").is_err());
    }
}
