//! Numbers as people read them: three significant digits, thousands apart, sizes in binary units.

use std::time::Duration;

/// Three significant digits, thousands separated by commas: `0.0123`, `4.57`, `104`, `168,000`; `∞` for what never ends.
pub fn rounded(value: f64) -> String {
    if !value.is_finite() {
        return if value == f64::INFINITY { "∞" } else { "–" }.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = |value: f64| value.abs().log10().floor() as i32;
    let unit = 10_f64.powi(magnitude(value) - 2);
    let rounded = (value / unit).round() * unit;
    // Rounding may have added a digit; the allowance covers that powers of ten below one are not exact.
    let magnitude = magnitude(rounded * (1.0 + 1e-12));
    if magnitude >= 2 {
        let sign = if rounded < 0.0 { "-" } else { "" };
        return format!("{sign}{}", grouped(rounded.abs().round() as u64));
    }
    let decimals = usize::try_from(2 - magnitude).unwrap_or(0).min(9);
    format!("{rounded:.decimals$}")
}

/// A ratio with three decimals: `0.983`; `∞` where what is compared never came.
pub fn ratio(value: f64) -> String {
    if value.is_infinite() { "∞".to_owned() } else { format!("{value:.3}") }
}

/// What `text` writes of a value; a dash where there is none.
pub fn or_dash<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}

/// A count with its thousands separated by commas.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size in the largest binary unit that divides it: `256 B`, `1 KiB`, `5 MiB`; sizes that none divides stay in bytes.
pub fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", grouped(bytes / unit)),
        None => format!("{} B", grouped(bytes)),
    }
}

/// A rate in the unit that keeps it short: `740 kbit/s`, `338 Mbit/s`, `8.71 Gbit/s`.
pub fn bit_rate(bits_per_second: f64) -> String {
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
    match units.into_iter().find(|(unit, _)| bits_per_second >= *unit) {
        Some((unit, name)) => format!("{} {name}", rounded(bits_per_second / unit)),
        None => format!("{} bit/s", rounded(bits_per_second)),
    }
}

/// A duration in the unit that keeps it short: `61.2 µs`, `4.57 ms`, `52.0 s`.
pub fn duration(duration: Duration) -> String {
    let nanos = duration.as_nanos() as f64;
    match nanos {
        n if n < 1e3 => format!("{} ns", rounded(n)),
        n if n < 1e6 => format!("{} µs", rounded(n / 1e3)),
        n if n < 1e9 => format!("{} ms", rounded(n / 1e6)),
        n => format!("{} s", rounded(n / 1e9)),
    }
}

/// A long duration as people plan with it: `45 s`, `about 3 min`, `about 2.5 h`.
pub fn about(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds < 100 => format!("{seconds} s"),
        seconds if seconds < 100 * 60 => format!("about {} min", (seconds + 30) / 60),
        seconds => format!("about {:.1} h", seconds as f64 / 3_600.0),
    }
}

/// A share as a percentage: `0.04 %`, `12.5 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", rounded(share * 100.0))
}

/// Microseconds as a fraction, for axes and JSON.
pub fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

/// Milliseconds as a fraction, for axes and JSON.
pub fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// Date and time of the civil calendar, `2026-11-21 20:47 UTC`.
pub fn utc(unix_seconds: u64) -> String {
    let (days, seconds) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Eras of 400 years that start on the first of March: leap days fall to the end of a year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3_600, seconds / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_significant_digits() {
        for (value, expect) in [
            (0.0, "0"),
            (0.012_34, "0.0123"),
            (4.567, "4.57"),
            (61.24, "61.2"),
            (103.6, "104"),
            (168_432.0, "168,000"),
            (999.9, "1,000"),
            (9.999, "10.0"),
            (-2.5, "-2.50"),
            (f64::NAN, "–"),
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(rounded(value), expect, "{value}");
        }
        assert_eq!([0.983_2, f64::INFINITY].map(ratio), ["0.983", "∞"]);
    }

    #[test]
    fn sizes_and_durations_choose_their_unit() {
        assert_eq!(
            (size(256), size(1024), size(5 << 20), size(1500)),
            ("256 B".into(), "1 KiB".into(), "5 MiB".into(), "1,500 B".into())
        );
        assert_eq!(duration(Duration::from_nanos(61_240)), "61.2 µs");
        assert_eq!(duration(Duration::from_millis(52_000)), "52.0 s");
        let planned = [45, 170, 5_969, 6_000, 18_000].map(|seconds| about(Duration::from_secs(seconds)));
        assert_eq!(planned, ["45 s", "about 3 min", "about 99 min", "about 1.7 h", "about 5.0 h"]);
        assert_eq!(bit_rate(8.71e9), "8.71 Gbit/s");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn dates_follow_the_civil_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(utc(1_795_294_025), "2026-11-21 20:47 UTC");
    }
}
