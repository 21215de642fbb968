//! The URI that a request to a proxy asks for.

use std::fmt;

use crate::message::{CoapRequest, OptionNumber, parse_uint};
use crate::resource::RemoteName;

/// Scheme, host, path and query of the wanted resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyUri {
    /// `coap`, or another.
    pub scheme: String,
    /// Name or address, without brackets.
    pub host: String,
    /// The port; 5683 unless it is given.
    pub port: u16,
    /// Path and query, without the slash in front, escaped.
    pub resource: String,
}

/// Why options name no URI; they are answered 4.02.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadProxyUri(String);

impl fmt::Display for BadProxyUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no URI to ask for, such as coap://[2001:db8::1]/path?query", self.0)
    }
}

impl std::error::Error for BadProxyUri {}

impl ProxyUri {
    /// What a request asks for: Proxy-Uri, or Proxy-Scheme with Uri-Host, Uri-Port, Uri-Path and Uri-Query (RFC 7252
    /// §5.10.2); `None` when it is not for a proxy.
    ///
    /// # Errors
    /// When the options name no URI.
    pub fn of(request: &CoapRequest<'_>) -> Result<Option<ProxyUri>, BadProxyUri> {
        let text = |number: OptionNumber| {
            request.options.value(number).map(|value| String::from_utf8_lossy(value).into_owned())
        };
        if let Some(uri) = text(OptionNumber::PROXY_URI) {
            return ProxyUri::parse(&uri).map(Some);
        }
        let Some(scheme) = text(OptionNumber::PROXY_SCHEME) else { return Ok(None) };
        // Without a host the request asks for this server itself, which is no other thing.
        let host = request.host().ok_or_else(|| BadProxyUri(format!("{scheme}://")))?;
        let host = checked_host(host.trim_start_matches('[').trim_end_matches(']'), &scheme)?;
        let port = request.options.value(OptionNumber::URI_PORT).and_then(parse_uint);
        let port = port.map_or(Some(DEFAULT_PORT), |port| u16::try_from(port).ok());
        let port = port.filter(|port| *port > 0).ok_or_else(|| BadProxyUri(format!("{scheme}://{host}")))?;
        Ok(Some(ProxyUri { scheme: scheme.to_ascii_lowercase(), host, port, resource: resource_of(request, 0) }))
    }

    /// Reads an absolute URI.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(uri: &str) -> Result<ProxyUri, BadProxyUri> {
        let wrong = || BadProxyUri(uri.chars().take(80).collect());
        let (scheme, rest) = uri.split_once("://").ok_or_else(wrong)?;
        let is_scheme =
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        if !is_scheme || uri.contains('#') || uri.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(wrong());
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, resource) = rest.split_at(end);
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
                (host, port.strip_prefix(':').or_else(|| port.is_empty().then_some("")).ok_or_else(wrong)?)
            }
            None => authority.split_once(':').unwrap_or((authority, "")),
        };
        let host = checked_host(host, uri)?;
        let port = if port.is_empty() { DEFAULT_PORT } else { port.parse().map_err(|_| wrong())? };
        let resource = resource.strip_prefix('/').unwrap_or(resource);
        if port == 0 || has_bad_escape(resource) || has_steps(resource) {
            return Err(wrong());
        }
        Ok(ProxyUri { scheme: scheme.to_ascii_lowercase(), host, port, resource: resource.to_owned() })
    }

    /// The resource at its thing.
    pub fn name(&self) -> RemoteName {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        RemoteName { thing: format!("{host}:{}", self.port), path: self.resource.clone() }
    }
}

/// Path behind the first `skipped` segments and query of a request, escaped, without the slash in front.
pub(super) fn resource_of(request: &CoapRequest<'_>, skipped: usize) -> String {
    let segments: Vec<String> = request.path_segments().skip(skipped).map(escaped).collect();
    let queries: Vec<String> = request.queries().map(escaped).collect();
    let query = if queries.is_empty() { String::new() } else { format!("?{}", queries.join("&")) };
    format!("{}{query}", segments.join("/"))
}

fn checked_host(host: &str, uri: &str) -> Result<String, BadProxyUri> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~".contains(&byte);
    match !host.is_empty() && host.len() <= HOST_MAX_BYTES && host.bytes().all(is_allowed) {
        true => Ok(host.to_ascii_lowercase()),
        false => Err(BadProxyUri(uri.chars().take(80).collect())),
    }
}

/// Whether the path has a segment `.` or `..`, which no option carries (RFC 7252 §5.10.1).
fn has_steps(resource: &str) -> bool {
    let path = resource.split('?').next().unwrap_or(resource);
    path.split('/').any(|segment| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | ".."))
}

/// Whether a `%` stands before something else than two hexadecimal digits.
fn has_bad_escape(text: &str) -> bool {
    text.split('%').skip(1).any(|part| {
        let digits = part.as_bytes().get(..2);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// One segment of a path or argument of a query as a URI has it.
pub(crate) fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte.is_ascii_alphanumeric() || b"-._~!$'()*+,;=:@".contains(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

const DEFAULT_PORT: u16 = 5683;
const HOST_MAX_BYTES: usize = 255;
