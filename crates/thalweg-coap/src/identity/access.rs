//! Which clients may do what with which resources.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::{Caller, SessionIdentity, Transport};
use crate::message::{CoapRequest, Code, Response, unescape};

/// Rules for access to resources. The rules for the longest path that covers a request's decide: one of them must allow its
/// method to its client. A path that no rule covers is open to all.
///
/// The path of a request that names another server is not one of this server's. Rules for the proxy decide on it, those for `/`
/// where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRules {
    rules: Vec<AccessRule>,
}

/// Allows `methods` on a target to `who`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRule {
    /// The requests that it concerns.
    pub target: AccessTarget,
    /// The allowed methods.
    pub methods: Methods,
    /// The clients.
    pub who: Who,
}

/// The requests that a rule concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTarget {
    /// Those for a path such as `/locks` and everything below it; `/` for all. It has no escapes: a `%` stands for itself.
    Path(String),
    /// Those that name another server (Proxy-Uri, Proxy-Scheme).
    Proxy,
}

impl AccessTarget {
    /// How closely it fits a request, in segments of the path; `None` where it does not.
    fn depth(&self, request: &CoapRequest<'_>, is_for_proxy: bool) -> Option<usize> {
        match self {
            AccessTarget::Proxy => is_for_proxy.then_some(1),
            AccessTarget::Path(path) if is_for_proxy => is_root(path).then_some(0),
            AccessTarget::Path(path) => depth_of(request.path_segments(), path),
        }
    }
}

/// A set of methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods(u8);

impl Methods {
    /// Every method.
    pub const ALL: Methods = Methods(u8::MAX);
    /// No method.
    pub const NONE: Methods = Methods(0);

    /// The set with `method` in it.
    #[must_use]
    pub fn with(self, method: Code) -> Methods {
        Methods(self.0 | bit(method))
    }

    /// Whether `method` is in the set.
    pub fn contains(self, method: Code) -> bool {
        self.0 & bit(method) != 0
    }
}

/// The bit of a method; a code that is none has the highest one.
fn bit(method: Code) -> u8 {
    1 << (method.byte().wrapping_sub(1)).min(7)
}

/// A kind of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Everyone.
    Anyone,
    /// Nobody.
    Nobody,
    /// Whoever has proved an identity by DTLS, TLS or OSCORE.
    Known,
    /// The holder of the pre-shared key of this identity.
    PresharedKey(Vec<u8>),
    /// The holder of a certificate with this subject, in the form of RFC 4514 or as a bare common name.
    Subject(String),
    /// The OSCORE client with this sender ID.
    Oscore(Vec<u8>),
    /// Whoever uses this transport.
    Transport(Transport),
    /// Hosts whose addresses begin with these bits. Over plain UDP addresses may be forged.
    Network(IpAddr, u8),
}

impl Who {
    /// Whether `caller` is of this kind.
    pub fn is(&self, caller: &Caller) -> bool {
        match self {
            Who::Anyone => true,
            Who::Nobody => false,
            Who::Known => caller.is_known(),
            Who::PresharedKey(identity) => {
                matches!(caller.session.as_deref(), Some(SessionIdentity::PresharedKey(other)) if other == identity)
            }
            Who::Subject(name) => match caller.session.as_deref() {
                Some(SessionIdentity::Certificate { subject }) => subject == name || is_common_name(subject, name),
                _ => false,
            },
            // Another client may have the ID of one whose context was taken away while its request waited.
            Who::Oscore(id) => {
                caller.oscore.as_ref().is_some_and(|context| context.recipient_id() == id && !context.is_retired())
            }
            Who::Transport(transport) => caller.transport == *transport,
            Who::Network(address, bits) => has_prefix(caller.address.ip(), *address, *bits),
        }
    }
}

/// Whether the subject's common name is `name`, and there is only one.
fn is_common_name(subject: &str, name: &str) -> bool {
    // An escaped comma is no end of a part (RFC 4514 §2.4).
    let mut names = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (at, letter) in subject.char_indices() {
        if matches!(letter, ',' | '+') && !is_escaped {
            names.push(&subject[start..at]);
            start = at + 1;
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    names.push(&subject[start..]);
    let mut common = names.iter().filter_map(|part| part.trim_start().strip_prefix("CN="));
    common.next() == Some(name) && common.next().is_none()
}

fn has_prefix(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address.to_canonical(), network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            let bits = u32::from(bits.min(32));
            (one.to_bits() ^ other.to_bits()).leading_zeros() >= bits
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            (one.to_bits() ^ other.to_bits()).leading_zeros() >= u32::from(bits.min(128))
        }
        _ => false,
    }
}

impl AccessRules {
    /// These rules.
    pub fn new(rules: impl IntoIterator<Item = AccessRule>) -> AccessRules {
        AccessRules { rules: rules.into_iter().collect() }
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The answer to a request that is not allowed: 4.01 to a client that has proved nothing, 4.03 to one that has. `None`
    /// for one that is allowed. Allocates nothing then.
    pub fn refuse(&self, request: &CoapRequest<'_>, caller: &Caller) -> Option<Response> {
        let mut longest = None;
        let mut is_allowed = true;
        let is_for_proxy = request.is_for_proxy();
        for rule in &self.rules {
            let Some(depth) = rule.target.depth(request, is_for_proxy) else { continue };
            if longest.is_none_or(|longest| depth > longest) {
                (longest, is_allowed) = (Some(depth), false);
            }
            if longest == Some(depth) {
                is_allowed |= rule.methods.contains(request.code) && rule.who.is(caller);
            }
        }
        if is_allowed {
            return None;
        }
        Some(match caller.is_known() {
            false => Response::error(Code::UNAUTHORIZED, "access needs an identity: DTLS, TLS or OSCORE"),
            true => Response::error(Code::FORBIDDEN, "access is not allowed to this identity"),
        })
    }
}

/// How many segments `path` has, if a path of these segments is `path` or lies below it. However a request divides a path
/// into segments, the handler may read it as the same one.
pub(crate) fn depth_of<'a>(segments: impl Iterator<Item = &'a str>, path: &str) -> Option<usize> {
    let mut segments = segments.flat_map(|segment| segment.split('/')).filter(|segment| !segment.is_empty());
    let mut depth = 0;
    for expected in path.split('/').filter(|segment| !segment.is_empty()) {
        if segments.next() != Some(expected) {
            return None;
        }
        depth += 1;
    }
    Some(depth)
}

/// The path that one with escapes such as `%20` stands for; `None` where a `%` begins none, or the path is no UTF-8.
pub(crate) fn unescaped(path: &str) -> Option<String> {
    String::from_utf8(unescape(path).ok()?).ok()
}

/// Whether a path stands for everything.
pub(crate) fn is_root(path: &str) -> bool {
    path.bytes().all(|byte| byte == b'/')
}

/// Why a text is no access rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(String);

impl fmt::Display for RuleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for RuleError {}

/// `PATH METHODS WHO`, such as `/locks get,put psk:porter`; `proxy` in place of a path for requests that name another server. The
/// path is written as in a URI: `%20` for a space, `%25` for a `%`.
impl FromStr for AccessRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<AccessRule, RuleError> {
        let parts: Vec<&str> = text.splitn(3, ' ').collect();
        let [path, methods, who] = parts[..] else {
            return Err(RuleError(format!("\"{text}\" is no access rule; write PATH METHODS WHO, such as {EXAMPLE}")));
        };
        let target = match path {
            "proxy" => AccessTarget::Proxy,
            _ if path.starts_with('/') => {
                let wrong = || RuleError(format!("the path \"{path}\" of an access rule: {BAD_ESCAPE}"));
                AccessTarget::Path(unescaped(path).ok_or_else(wrong)?)
            }
            _ => {
                let said =
                    format!("the path \"{path}\" of an access rule begins with a slash, unless it is the word proxy");
                return Err(RuleError(said));
            }
        };
        Ok(AccessRule { target, methods: methods.parse()?, who: who.parse()? })
    }
}

/// `any`, or names of methods with commas between them.
impl FromStr for Methods {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Methods, RuleError> {
        if text == "any" {
            return Ok(Methods::ALL);
        }
        text.split(',').try_fold(Methods::NONE, |methods, name| {
            let known = METHODS.iter().find(|(known, _)| *known == name);
            let names = METHODS.map(|(known, _)| known).join(", ");
            let unknown = || RuleError(format!("\"{name}\" is no method; use any or {names}"));
            known.map(|(_, code)| methods.with(*code)).ok_or_else(unknown)
        })
    }
}

/// `any`, `none`, `known`, `psk:IDENTITY`, `subject:NAME`, `oscore:HEX`, `transport:SCHEME` or `net:ADDRESS/BITS`.
impl FromStr for Who {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Who, RuleError> {
        let wrong = |why: &str| RuleError(format!("\"{text}\" names no clients: {why}"));
        Ok(match text.split_once(':') {
            None if text == "any" => Who::Anyone,
            None if text == "none" => Who::Nobody,
            None if text == "known" => Who::Known,
            Some(("psk", identity)) => Who::PresharedKey(identity.as_bytes().to_vec()),
            Some(("subject", name)) => Who::Subject(name.to_owned()),
            Some(("oscore", digits)) => {
                Who::Oscore(bytes_of(digits).ok_or_else(|| wrong("an OSCORE ID is hexadecimal digits"))?)
            }
            Some(("transport", scheme)) => {
                let found = Transport::ALL.into_iter().find(|transport| transport.scheme() == scheme);
                Who::Transport(found.ok_or_else(|| wrong("a transport is a scheme such as coaps or coap+tcp"))?)
            }
            Some(("net", network)) => {
                let (address, bits) = network.split_once('/').ok_or_else(|| wrong("write net:ADDRESS/BITS"))?;
                let address: IpAddr = address.parse().map_err(|_| wrong("the address cannot be read"))?;
                let bits_max = if address.is_ipv4() { 32 } else { 128 };
                let bits = bits.parse().ok().filter(|bits| *bits <= bits_max);
                Who::Network(address, bits.ok_or_else(|| wrong("too many bits"))?)
            }
            _ => return Err(wrong("use any, none, known, psk:, subject:, oscore:, transport: or net:")),
        })
    }
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let pair = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    };
    pairs.map(pair).collect()
}

/// Why there is no path that a text with escapes stands for.
pub(crate) const BAD_ESCAPE: &str = "a % begins no escape, or the escapes are no UTF-8; write %25 for a %";
const EXAMPLE: &str = "\"/locks get,put psk:porter\"";
const METHODS: [(&str, Code); 7] = [
    ("get", Code::GET),
    ("post", Code::POST),
    ("put", Code::PUT),
    ("delete", Code::DELETE),
    ("fetch", Code::FETCH),
    ("patch", Code::PATCH),
    ("ipatch", Code::IPATCH),
];
