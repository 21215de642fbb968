//! Which resource of which server a command means.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use thalweg_coap::endpoint::Confirmability;
use thalweg_coap::identity::Transport;
use thalweg_coap::interaction::client::ClientError;
use thalweg_coap::message::{RequestBuf, Response, content_format};

use crate::outcome::Failure;

/// A `coap://host:port/path?query`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUri {
    /// The transport that the scheme names.
    pub transport: Transport,
    /// Host and port as they were written.
    authority: String,
    /// Path and query, beginning with a slash.
    pub resource: String,
}

impl TargetUri {
    /// Reads a URI (RFC 7252 §6.1); the scheme may be left out.
    pub fn parse(text: &str) -> Result<TargetUri, String> {
        let (transport, rest) = match text.split_once("://") {
            None => (Transport::Udp, text),
            Some((scheme, rest)) => {
                let known = Transport::ALL.into_iter().find(|transport| transport.scheme() == scheme);
                let schemes = Transport::ALL.map(Transport::scheme).join(", ");
                (known.ok_or_else(|| format!("the scheme {scheme} is not supported; use one of {schemes}"))?, rest)
            }
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, resource) = rest.split_at(end);
        if authority.is_empty() {
            return Err("the URI has no host; give one such as coap://127.0.0.1/request".to_owned());
        }
        let resource = if resource.starts_with('/') { resource.to_owned() } else { format!("/{resource}") };
        if let Some(fault) = RequestBuf::get(&resource).fault() {
            return Err(format!("the request cannot be sent: {fault}"));
        }
        Ok(TargetUri { transport, authority: authority.to_owned(), resource })
    }

    /// The host as it was written, without port and brackets: the name that its certificate has to have.
    pub fn host(&self) -> &str {
        match self.authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(rest),
            None => self.authority.split(':').next().unwrap_or(&self.authority),
        }
    }

    /// The server's address; asks the resolver for names.
    pub fn address(&self) -> Result<SocketAddr, Failure> {
        let is_bracketed = self.authority.ends_with(']');
        let has_port = !is_bracketed && self.authority.contains(':');
        let with_port = if has_port {
            self.authority.clone()
        } else {
            format!("{}:{}", self.authority, self.transport.default_port())
        };
        let found = with_port.to_socket_addrs().map(|mut addresses| addresses.next());
        let why = match found {
            Ok(Some(address)) => return Ok(address),
            Ok(None) => "the resolver knows no address".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(Failure::Usage(format!(
            "\"{}\" is no host to reach: {why}; use name, name:port or [v6]:port",
            self.authority
        )))
    }
}

/// Delivery of a request.
#[derive(Args, Debug)]
pub struct AskingOptions {
    /// Send the request non-confirmable: once, unanswered when it is lost (default: confirmable, repeated up to four times).
    #[arg(long)]
    pub non: bool,

    /// Give up with exit code 3 after SECONDS (default: 10).
    #[arg(long, value_name = "SECONDS", default_value = "10", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub timeout: Duration,

    /// Print the answer as one JSON object: code, content_format, max_age_s, etag, and text or hex (default: the representation alone).
    #[arg(long)]
    pub json: bool,
}

impl AskingOptions {
    pub fn delivery(&self) -> Confirmability {
        if self.non { Confirmability::NonConfirmable } else { Confirmability::Confirmable }
    }
}

/// A content format by name or number.
pub fn format(text: &str) -> Result<u16, String> {
    let named = FORMATS.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    let names: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
    named
        .or_else(|| text.parse().ok())
        .ok_or_else(|| format!("a content format is a number up to 65535 or one of {}", names.join(", ")))
}

/// The failure of a command whose client failed.
pub fn failure(error: &ClientError) -> Failure {
    match error {
        ClientError::TimedOut(_) => Failure::TimedOut(error.to_string()),
        ClientError::System(_) | ClientError::Request(_) | ClientError::Session(_) => Failure::from_cause(error),
    }
}

/// The representation as text; other bytes in hexadecimal digits. An error code is a failure that quotes the server.
pub fn representation(response: &Response) -> Result<String, Failure> {
    let text = match std::str::from_utf8(&response.payload) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let digits: String = response.payload.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("0x{digits}")
        }
    };
    if response.code.is_success() {
        return Ok(text);
    }
    let advice = response.max_age.map(|seconds| format!("; ask again in {seconds} s")).unwrap_or_default();
    let diagnosis = if text.is_empty() { text } else { format!(": {text}") };
    Err(Failure::Failed(format!("the server answered {:?}{diagnosis}{advice}", response.code)))
}

/// The representation with what describes it, as JSON: `text` where it is text, else `hex`. An error code is a failure that quotes the
/// server.
pub fn representation_json(response: &Response) -> Result<Value, Failure> {
    let shown = representation(response)?;
    let is_text = std::str::from_utf8(&response.payload).is_ok();
    let (text, hex) = if is_text { (Some(shown), None) } else { (None, shown.strip_prefix("0x").map(str::to_owned)) };
    Ok(json!({
        "code": response.code.to_string(),
        "content_format": response.content_format,
        "max_age_s": response.max_age,
        "location": response.location(),
        "etag": response.etag.map(|etag| etag.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        "text": text,
        "hex": hex,
    }))
}

const FORMATS: [(&str, u16); 7] = [
    ("text", content_format::TEXT),
    ("link-format", content_format::LINK_FORMAT),
    ("octets", content_format::OCTET_STREAM),
    ("json", content_format::JSON),
    ("cbor", content_format::CBOR),
    ("senml-json", content_format::SENML_JSON),
    ("senml-cbor", content_format::SENML_CBOR),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, address: &str, resource: &str) {
        let target = TargetUri::parse(text).unwrap();
        let found = target.address().map_err(|_| "no address").unwrap();
        assert_eq!((found.to_string().as_str(), target.resource.as_str()), (address, resource), "{text}");
    }

    #[test]
    fn uris_are_read_with_and_without_what_can_be_left_out() {
        check("coap://127.0.0.1/request", "127.0.0.1:5683", "/request");
        check("127.0.0.1:7/a/b?c=d", "127.0.0.1:7", "/a/b?c=d");
        check("coap://[::1]", "[::1]:5683", "/");
        check("[::1]:99?x", "[::1]:99", "/?x");
        check("coaps://127.0.0.1/a", "127.0.0.1:5684", "/a");
        check("coap+tcp://[::1]/a", "[::1]:5683", "/a");
        assert_eq!(TargetUri::parse("coaps://[::1]:7/a").unwrap().host(), "::1");
        assert_eq!(TargetUri::parse("coaps://device:7/a").unwrap().host(), "device");
        assert!(TargetUri::parse("http://h/").unwrap_err().contains("scheme http is not"));
        assert!(TargetUri::parse("/a").is_err());
        for (text, expect) in [("h/a#b", "fragment"), ("h#b", "fragment"), ("h/%2", "escape"), ("h/a?b=%zz", "escape")]
        {
            assert!(TargetUri::parse(text).unwrap_err().contains(expect), "{text}");
        }
    }

    #[test]
    fn content_formats_have_names_and_numbers() {
        assert_eq!((format("json"), format("11542")), (Ok(50), Ok(11_542)));
        assert!(format("yaml").unwrap_err().contains("link-format"));
    }
}
