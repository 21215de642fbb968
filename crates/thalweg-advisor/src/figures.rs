//! Figures in sentences.

use std::time::Duration;

/// A whole number with commas between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A duration in the unit that leaves the fewest digits.
pub(crate) fn time(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    let (number, unit) = match micros {
        _ if micros >= 1e6 => (micros / 1e6, "s"),
        _ if micros >= 1e3 => (micros / 1e3, "ms"),
        _ if micros >= 1.0 || micros == 0.0 => (micros, "µs"),
        _ => (micros * 1e3, "ns"),
    };
    format!("{} {unit}", short(number))
}

/// Bits a second.
pub(crate) fn rate(bits_per_second: f64) -> String {
    let (number, unit) = match bits_per_second {
        bits if bits >= 1e9 => (bits / 1e9, "Gbit/s"),
        bits if bits >= 1e6 => (bits / 1e6, "Mbit/s"),
        bits => (bits / 1e3, "kbit/s"),
    };
    format!("{} {unit}", short(number))
}

/// Three digits, or all before the point.
fn short(number: f64) -> String {
    let decimals = match number {
        _ if number >= 99.95 => 0,
        _ if number >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{number:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A number of bytes, counted or computed, as a whole number; nothing for what is not a number.
pub(crate) fn whole(number: f64) -> u64 {
    // The conversion is saturating: a negative number gives 0, one that is too large the most.
    number.ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!((grouped(0), grouped(999), grouped(10_738_624)), ("0".into(), "999".into(), "10,738,624".into()));
        let check = |micros: f64, expect: &str| assert_eq!(time(Duration::from_secs_f64(micros / 1e6)), expect);
        check(0.0, "0 µs");
        check(57.8, "57.8 µs");
        check(33_366.0, "33.4 ms");
        check(10_000.0, "10 ms");
        check(2_000_000.0, "2 s");
        check(0.5, "500 ns");
        assert_eq!((rate(1.2429e9), rate(9_900.0)), ("1.24 Gbit/s".to_owned(), "9.9 kbit/s".to_owned()));
        assert_eq!((whole(-1.0), whole(f64::NAN), whole(1.2)), (0, 0, 2));
    }
}
