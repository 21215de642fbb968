//! Numbers with a unit on the command line.

use std::time::Duration;

/// A duration in seconds, fractions allowed.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds; give one such as 2.5".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| "the number of seconds is negative or too large; give one such as 2.5".to_owned())
}

/// A duration with its unit: `250us`, `1.5ms`, `2s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let units = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let needed = || "not a duration; give a number with us, ms or s, such as 250us".to_owned();
    let (number, unit) = units
        .into_iter()
        .find_map(|(name, unit)| text.strip_suffix(name).map(|number| (number, unit)))
        .ok_or_else(needed)?;
    let number: f64 = number.trim().parse().map_err(|_| needed())?;
    Duration::try_from_secs_f64(number * unit)
        .map_err(|_| "the duration is negative or too large; give one such as 250us".to_owned())
}

/// A participant's lease: a duration within the limits of the API.
pub fn lease(text: &str) -> Result<Duration, String> {
    let lease = duration(text).map_err(|_| "not a duration; give a number with s or ms, such as 30s".to_owned())?;
    let is_possible = (Duration::from_secs(1)..=Duration::from_secs(3_600)).contains(&lease);
    is_possible.then_some(lease).ok_or_else(|| "the lease is out of range; give 1s to 3600s".to_owned())
}

/// Samples a second; 0 means no limit.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "not a number of samples a second; give one such as 0.5".to_owned())?;
    if rate.is_finite() && rate >= 0.0 {
        Ok(rate)
    } else {
        Err("the rate is negative; give 0 or more samples a second".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_rates_are_possible_ones() {
        assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2_500)));
        assert!(seconds("-1").is_err() && seconds("inf").is_err() && seconds("soon").is_err());
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(duration("1.5ms"), Ok(Duration::from_micros(1_500)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert!(duration("5").is_err() && duration("-1s").is_err() && duration("x ms").is_err());
        assert_eq!(lease("30s"), Ok(Duration::from_secs(30)));
        assert!(lease("999ms").is_err() && lease("3601s").is_err() && lease("30").is_err());
        assert_eq!(rate("0"), Ok(0.0));
        assert!(rate("-1").is_err() && rate("NaN").is_err());
    }
}
