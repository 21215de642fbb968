//! The base URI of a registration: named by the registrant, or where it asks from (RFC 9176 §5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::DirectoryError;
use crate::identity::Caller;
use crate::link_format::UriReference;

/// The URI that the references of a registration are resolved against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RegistrationBase {
    pub uri: String,
    /// Whether the registrant named it; else it follows the address of its requests (RFC 9176 §5.3.1).
    pub is_named: bool,
    /// The link on which alone the address means the registrant; `None` for an address that is not link-local.
    link: Option<u32>,
}

impl RegistrationBase {
    /// What a registrant named. An address of a link is taken from a client on that link only (RFC 9176 §5).
    ///
    /// # Errors
    /// When it is no base, or of a link on which the client is not.
    pub(super) fn named(uri: String, caller: Option<&Caller>) -> Result<RegistrationBase, DirectoryError> {
        let bad = |reason: &str| DirectoryError::Bad(reason.to_owned());
        let host = host_of_base(&uri)
            .ok_or_else(|| bad("base is a URI such as coap://[2001:db8::1]:61616, without zone, query and fragment"))?;
        let link = match is_link_local(host) {
            true => Some(caller.and_then(link_of).ok_or_else(|| bad("a link-local base is registered over its link"))?),
            false => None,
        };
        Ok(RegistrationBase { uri, is_named: true, link })
    }

    /// Scheme, address and port of a client. The port is left out where it is that of the scheme (RFC 7252 §6.5).
    pub(super) fn of_source(caller: &Caller) -> RegistrationBase {
        let host = match caller.address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let port = Some(caller.address.port()).filter(|port| *port != caller.transport.default_port());
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        let uri = format!("{}://{host}{port}", caller.transport.scheme());
        RegistrationBase { uri, is_named: false, link: link_of(caller) }
    }

    /// Whether a lookup of this client may show it: an address of a link means nothing, or another host, elsewhere (RFC
    /// 9176 §6.1).
    pub(super) fn is_shown_to(&self, caller: Option<&Caller>) -> bool {
        self.link.is_none() || self.link == caller.and_then(link_of)
    }
}

/// The link of a client with a link-local address. IPv4 does not tell one link from another.
fn link_of(caller: &Caller) -> Option<u32> {
    match caller.address {
        SocketAddr::V6(address) if address.ip().is_unicast_link_local() => Some(address.scope_id()),
        address => match address.ip().to_canonical() {
            IpAddr::V4(ip) if ip.is_link_local() => Some(0),
            _ => None,
        },
    }
}

/// The host of a base, an IPv6 address with its brackets; `None` for what is no base.
fn host_of_base(uri: &str) -> Option<&str> {
    let parts = UriReference::parse(uri);
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !b"<>\"\\^`{|}".contains(&byte);
    let is_known = |scheme: &str| SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme));
    if !parts.scheme.is_some_and(is_known) || parts.query.or(parts.fragment).is_some() || !uri.bytes().all(is_allowed) {
        return None;
    }
    let authority = parts.authority?;
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let end = place.find(']').map_or_else(|| place.find(':').unwrap_or(place.len()), |bracket| bracket + 1);
    let (host, port) = place.split_at(end);
    let is_port = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = match host.starts_with('[') {
        // An address with a zone is none here, and a base has no zone.
        true => ipv6(host).is_some(),
        false => !host.is_empty() && !host.contains(['[', ']']),
    };
    (is_host && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))).then_some(host)
}

fn is_link_local(host: &str) -> bool {
    let is_v4 = host.parse().is_ok_and(|ip: Ipv4Addr| ip.is_link_local());
    is_v4 || ipv6(host).is_some_and(|ip| ip.is_unicast_link_local())
}

fn ipv6(host: &str) -> Option<Ipv6Addr> {
    host.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// Of CoAP (RFC 7252 §6, RFC 8323 §8), and of HTTP, whose servers may be registered by somebody else.
const SCHEMES: [&str; 8] = ["coap", "coaps", "coap+tcp", "coaps+tcp", "coap+ws", "coaps+ws", "http", "https"];
