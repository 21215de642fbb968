//! The keys and values of format parameters, and numbers in them.

use std::time::Duration;

use super::error::SdpFault;
use crate::format::FrameRate;

/// How many keys of one stream are read.
const KEYS_MAX: usize = 64;

/// The format parameters of one payload type: `key=value; flag; …`, from all its lines together.
#[derive(Debug, Default)]
pub(super) struct Parameters<'a> {
    keys: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Parameters<'a> {
    /// Adds the parameters of a line. A key may come again with the same value only.
    pub(super) fn add(&mut self, line: &'a str) -> Result<(), SdpFault> {
        for part in line.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None => (part, None),
            };
            match self.keys.iter().find(|(known, _)| known.eq_ignore_ascii_case(key)) {
                Some((_, before)) if *before == value => {}
                Some((known, before)) => {
                    let first = before.map_or_else(|| (*known).to_owned(), |before| format!("{known}={before}"));
                    return Err(SdpFault::contradiction(&first, part));
                }
                None if self.keys.len() == KEYS_MAX => {
                    return Err(SdpFault::TooMany { what: "keys of one stream", max: KEYS_MAX });
                }
                None => self.keys.push((key, value)),
            }
        }
        Ok(())
    }

    /// The value of a key; none when the key is missing.
    pub(super) fn value(&self, key: &str) -> Result<Option<&'a str>, SdpFault> {
        match self.keys.iter().find(|(known, _)| known.eq_ignore_ascii_case(key)) {
            None => Ok(None),
            Some((_, Some(value))) if !value.is_empty() => Ok(Some(value)),
            Some(_) => Err(SdpFault::invalid(key, "", "a value")),
        }
    }

    /// The value of a key that must be there.
    pub(super) fn required(&self, key: &'static str) -> Result<&'a str, SdpFault> {
        self.value(key)?.ok_or(SdpFault::Missing { key })
    }

    /// A key without a value; GStreamer's older elements give it one.
    pub(super) fn flag(&self, key: &str) -> Result<bool, SdpFault> {
        match self.keys.iter().find(|(known, _)| known.eq_ignore_ascii_case(key)) {
            None | Some((_, Some("false" | "0"))) => Ok(false),
            Some((_, None | Some("true" | "1"))) => Ok(true),
            Some((_, Some(value))) => Err(SdpFault::invalid(key, value, "without a value")),
        }
    }

    /// A number in a range; none when the key is missing.
    pub(super) fn number(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<u32>,
        expected: &'static str,
    ) -> Result<Option<u32>, SdpFault> {
        let Some(value) = self.value(key)? else { return Ok(None) };
        let number = digits(value).filter(|number| range.contains(number));
        number.map(Some).ok_or_else(|| SdpFault::invalid(key, value, expected))
    }
}

/// A decimal number without a sign.
pub(super) fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|octet| octet.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// `25` or `30000/1001` (ST 2110-20).
pub(super) fn exact_rate(key: &str, text: &str) -> Result<FrameRate, SdpFault> {
    let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
    let numbers = digits(numerator.trim()).zip(digits(denominator.trim()));
    let rate = numbers.and_then(|(numerator, denominator)| FrameRate::new(numerator, denominator).ok());
    rate.ok_or_else(|| SdpFault::invalid(key, text, "frames a second from 1 to 1000, such as 25 or 30000/1001"))
}

/// A rate in decimals (RFC 8866 §6.13), such as 29.97, which stands for 30000/1001.
pub(super) fn decimal_rate(key: &str, text: &str) -> Result<FrameRate, SdpFault> {
    let thousandths = decimal(text, 3).and_then(|value| u32::try_from(value).ok());
    let rate = thousandths.and_then(|thousandths| {
        let whole = thousandths.div_ceil(1000);
        let ntsc = (u64::from(whole) * 1_000_000).checked_div(1001)?;
        // 29.97 and 29.970 are cut or rounded forms of 29.97003.
        let rate = match u64::from(thousandths).abs_diff(ntsc) {
            _ if thousandths.is_multiple_of(1000) => FrameRate::new(whole, 1),
            0..=6 => FrameRate::new(whole * 1000, 1001),
            _ => FrameRate::new(thousandths, 1000),
        };
        rate.ok()
    });
    rate.ok_or_else(|| SdpFault::invalid(key, text, "frames a second from 1 to 1000, such as 29.97"))
}

/// Milliseconds in decimals, such as `ptime:0.125`; up to 10 s.
pub(super) fn milliseconds(key: &str, text: &str) -> Result<Duration, SdpFault> {
    let nanos = decimal(text, 6).filter(|nanos| (1..=10_000_000_000).contains(nanos));
    nanos.map(Duration::from_nanos).ok_or_else(|| SdpFault::invalid(key, text, "milliseconds, such as 1 or 0.125"))
}

/// A decimal number times 10 to `places`; digits beyond are cut.
fn decimal(text: &str, places: usize) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    if whole.is_empty() || whole.len() > 6 || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let fraction: String = fraction.chars().chain(std::iter::repeat('0')).take(places).collect();
    format!("{whole}{fraction}").parse().ok()
}
