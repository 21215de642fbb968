//! Numbers with a unit on the command line.

use std::time::Duration;

/// Longest duration that is taken: a hundred years, which clocks can add to the present.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);
/// Lowest rate that is taken: a sample in eleven days.
const SLOWEST: f64 = 1e-6;

/// A duration of so many seconds, if that is a possible one.
fn possible(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| *duration <= LONGEST)
}

/// A duration in seconds, fractions allowed.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds; give one such as 2.5".to_owned())?;
    possible(seconds).ok_or_else(|| "the number of seconds is negative or too large; give one such as 2.5".to_owned())
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
    possible(number * unit).ok_or_else(|| "the duration is negative or too large; give one such as 250us".to_owned())
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
    if rate.is_finite() && (rate == 0.0 || rate >= SLOWEST) {
        Ok(rate)
    } else {
        Err("the rate is negative or too low; give 0, or at least 0.000001 samples a second".to_owned())
    }
}

/// Bits a second, with `k`, `M` or `G` for powers of 1000: `200M`, `1.25G`.
pub fn bit_rate(text: &str) -> Result<f64, String> {
    scaled(text, &[("k", 1e3), ("M", 1e6), ("G", 1e9)])
        .filter(|rate| *rate > 0.0)
        .ok_or_else(|| "not a number of bits a second; give one such as 200M or 1.25G".to_owned())
}

/// Bytes, with `K` or `M` for powers of 1024: `1472`, `128K`, `32M`.
pub fn byte_count(text: &str) -> Result<u32, String> {
    scaled(text, &[("K", 1024.0), ("M", 1024.0 * 1024.0)])
        .filter(|bytes| bytes.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(bytes))
        .map(|bytes| bytes as u32)
        .ok_or_else(|| "not a number of bytes; give one such as 1472, 128K or 32M".to_owned())
}

/// A size of files or memory, with `K`, `M` or `G` for powers of 1024: `64M`, `1.5G`. More than 0.
pub fn size(text: &str) -> Result<u64, String> {
    scaled(text, &[("K", 1024.0), ("M", 1024.0 * 1024.0), ("G", 1024.0 * 1024.0 * 1024.0)])
        .filter(|bytes| (1.0..=1e15).contains(bytes))
        .map(|bytes| bytes as u64)
        .ok_or_else(|| "not a number of bytes; give one such as 64M or 1.5G".to_owned())
}

/// A finite number with one of these units behind it, or with none.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let unit = units.iter().find_map(|(name, unit)| text.strip_suffix(name).map(|number| (number, *unit)));
    let (number, unit) = unit.unwrap_or((text, 1.0));
    number.parse().ok().map(|number: f64| number * unit).filter(|number| number.is_finite())
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
        assert_eq!((bit_rate("200M"), bit_rate("1.25G"), bit_rate("5000")), (Ok(200e6), Ok(1.25e9), Ok(5_000.0)));
        assert!(["0", "-1M", "NaN", "1e999", "fast", "", "M"].iter().all(|text| bit_rate(text).is_err()));
        assert_eq!(
            (byte_count("1472"), byte_count("128K"), byte_count("1.5M")),
            (Ok(1_472), Ok(131_072), Ok(1_572_864))
        );
        assert!(["-1", "0.5", "4096M", "64k", ""].iter().all(|text| byte_count(text).is_err()));
        assert_eq!((size("64M"), size("1.5G"), size("10")), (Ok(64 << 20), Ok(3 << 29), Ok(10)));
        assert!(["0", "-1M", "NaN", "1e99", "big"].iter().all(|text| size(text).is_err()));
        assert_eq!(rate("0"), Ok(0.0));
        assert!(["-1", "NaN", "1e-20"].iter().all(|text| rate(text).is_err()));
        assert!(seconds("1e19").is_err() && duration("1e19s").is_err() && seconds("3e9").is_ok());
    }
}
