//! Names of resources of this thing and of others.

use std::fmt;
use std::str::FromStr;

use crate::resource::RemoteName;

/// The name of a resource: its thing and path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceName {
    /// At this thing; its path without the slash in front.
    Own(String),
    /// At another thing.
    Other(RemoteName),
}

/// Why a text names no resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError(String);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} names no resource; give /path for this thing or coap://host:port/path for another", self.0)
    }
}

impl std::error::Error for NameError {}

impl FromStr for ResourceName {
    type Err = NameError;

    /// Reads `/path` or `coap://host:port/path?query`; the port is 5683 unless it is given (RFC 7252 §6.1).
    fn from_str(text: &str) -> Result<ResourceName, NameError> {
        let wrong = || NameError(text.to_owned());
        if let Some(path) = text.strip_prefix('/').filter(|path| !path.is_empty() && !path.starts_with('/')) {
            return Ok(ResourceName::Own(path.to_owned()));
        }
        let rest = text.strip_prefix("coap://").ok_or_else(wrong)?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        // A colon within brackets belongs to an IPv6 address.
        let is_bracketed = host.ends_with(']') || !host.contains(':');
        let name_end = host.rfind(':').filter(|_| !is_bracketed).unwrap_or(host.len());
        if name_end == 0 || host.contains(['@', '?', '#']) {
            return Err(wrong());
        }
        let thing = match host.get(name_end + 1..) {
            Some(port) if !port.is_empty() => {
                port.parse::<u16>().map_err(|_| wrong())?;
                host.to_owned()
            }
            _ => format!("{}:{DEFAULT_PORT}", &host[..name_end]),
        };
        Ok(ResourceName::Other(RemoteName { thing, path: path.to_owned() }))
    }
}

const DEFAULT_PORT: u16 = 5683;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<(&str, &str)>) {
        let name = text.parse::<ResourceName>();
        match (name, expect) {
            (Ok(ResourceName::Own(path)), Some(("", expect))) => assert_eq!(path, expect),
            (Ok(ResourceName::Other(name)), Some((thing, path))) => {
                assert_eq!((name.thing.as_str(), name.path.as_str()), (thing, path));
            }
            (Err(_), None) => {}
            (name, expect) => panic!("{text}: {name:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn names_lead_to_this_thing_or_to_another() {
        check("/a/b", Some(("", "a/b")));
        check("coap://h/a?b=c", Some(("h:5683", "a?b=c")));
        check("coap://h:1/", Some(("h:1", "")));
        check("coap://[::1]", Some(("[::1]:5683", "")));
        check("coap://[::1]:9/x", Some(("[::1]:9", "x")));
        for wrong in ["", "/", "//a", "a", "coaps://h/a", "coap:///a", "coap://h:x/a", "coap://u@h/a"] {
            check(wrong, None);
        }
    }
}
