//! Where a forward proxy may go.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::ProxyUri;

/// The hosts that a forward proxy asks; any other is answered 4.03. A proxy without bounds lets strangers reach whatever
/// this host reaches, itself included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destinations {
    allowed: Vec<Allowed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Allowed {
    Any,
    /// Addresses that begin with these bits.
    Network {
        address: IpAddr,
        bits: u8,
    },
    Name(String),
}

/// A text that names no destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadDestination(String);

impl fmt::Display for BadDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no destination; use an address, a network such as 10.0.0.0/8, a host name, or * for all",
            self.0
        )
    }
}

impl std::error::Error for BadDestination {}

impl FromStr for Allowed {
    type Err = BadDestination;

    fn from_str(text: &str) -> Result<Allowed, BadDestination> {
        let wrong = || BadDestination(text.to_owned());
        if text == "*" {
            return Ok(Allowed::Any);
        }
        let (host, bits) = match text.split_once('/') {
            Some((host, bits)) => (host, Some(bits)),
            None => (text, None),
        };
        match (host.parse::<IpAddr>(), bits) {
            (Ok(address), bits) => {
                let most = if address.is_ipv4() { 32 } else { 128 };
                let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
                if bits > most { Err(wrong()) } else { Ok(Allowed::Network { address, bits }) }
            }
            (Err(_), None) => {
                let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
                let is_name = !host.is_empty() && host.bytes().all(is_allowed);
                if is_name { Ok(Allowed::Name(host.to_ascii_lowercase())) } else { Err(wrong()) }
            }
            (Err(_), Some(_)) => Err(wrong()),
        }
    }
}

impl Destinations {
    /// The hosts of these texts: an address, a network, a name, or `*`.
    ///
    /// # Errors
    /// The first text that is none of these.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Destinations, BadDestination> {
        Ok(Destinations { allowed: texts.into_iter().map(str::parse).collect::<Result<_, _>>()? })
    }

    /// Whether a request may go there. A name is compared as a name: what it resolves to is not looked at.
    pub fn allow(&self, uri: &ProxyUri) -> bool {
        let address = uri.host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        self.allowed.iter().any(|allowed| match allowed {
            Allowed::Any => true,
            Allowed::Network { address: network, bits } => {
                address.is_some_and(|address| is_in(address, *network, *bits))
            }
            Allowed::Name(name) => address.is_none() && *name == uri.host,
        })
    }
}

fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let shifted = |number: u128, length: u32| number.checked_shr(length - u32::from(bits)).unwrap_or_default();
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            shifted(u32::from(address).into(), 32) == shifted(u32::from(network).into(), 32)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            shifted(u128::from(address), 128) == shifted(u128::from(network), 128)
        }
        _ => false,
    }
}
