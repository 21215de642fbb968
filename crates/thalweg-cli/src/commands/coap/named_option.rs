//! Options of CoAP requests on the command line.

use thalweg_coap::message::{OptionNumber, RequestBuf, encode_uint};

/// An option with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedOption {
    number: OptionNumber,
    value: Vec<u8>,
}

impl NamedOption {
    /// Reads `NAME`, `NAME=VALUE` or `NUMBER=VALUE`; a value is `0x` and digits for octets, a number for options whose values are
    /// numbers, else text.
    pub fn parse(text: &str) -> Result<NamedOption, String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let number = OptionNumber::by_name(name).or_else(|| name.parse().ok().map(OptionNumber));
        let Some(number) = number else {
            let names: Vec<String> = OptionNumber::names().map(str::to_lowercase).collect();
            return Err(format!("there is no option {name}; use a number or one of {}", names.join(", ")));
        };
        let value = encoded(number, value.unwrap_or_default())?;
        if number.is_known() && !number.accepts(&value) {
            return Err(format!("{} bytes are no value of {number}", value.len()));
        }
        Ok(NamedOption { number, value })
    }

    /// The request with this option.
    pub fn add_to(&self, request: RequestBuf) -> RequestBuf {
        request.with_option(self.number, &self.value)
    }
}

fn encoded(number: OptionNumber, value: &str) -> Result<Vec<u8>, String> {
    if let Some(digits) = value.strip_prefix("0x") {
        let is_whole = digits.is_ascii() && digits.len().is_multiple_of(2);
        let octets = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok());
        return octets
            .collect::<Option<Vec<u8>>>()
            .filter(|_| is_whole)
            .ok_or_else(|| format!("{value} is not 0x and pairs of hexadecimal digits"));
    }
    if number.is_number() && !value.is_empty() {
        let value: u32 = value.parse().map_err(|_| format!("{number} is a number, not {value}"))?;
        return Ok(encode_uint(value, &mut [0; 4]).to_vec());
    }
    Ok(value.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, number: u16, value: &[u8]) {
        assert_eq!(NamedOption::parse(text), Ok(NamedOption { number: OptionNumber(number), value: value.to_vec() }));
    }

    #[test]
    fn options_have_names_numbers_and_values_of_their_kind() {
        check("if-match=0x1aFf", 1, &[0x1a, 0xff]);
        check("If-Match", 1, &[]);
        check("if-none-match", 5, &[]);
        check("no-response=26", 258, &[26]);
        check("uri-host=example.org", 3, b"example.org");
        check("size1=70000", 60, &[1, 0x11, 0x70]);
        check("2048=text", 2048, b"text");
        for (text, expect) in [
            ("if-mach=1", "if-match"),
            ("if-none-match=1", "no value of If-None-Match"),
            ("etag=0x1", "pairs of hexadecimal"),
            ("etag=0x\u{e9}", "pairs of hexadecimal"),
            ("accept=json", "is a number"),
            ("echo", "no value of Echo"),
        ] {
            assert!(NamedOption::parse(text).unwrap_err().contains(expect), "{text}");
        }
    }
}
