//! Registrations with their lifetimes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use thalweg_base::time::Instant;

use crate::link_format::{self, WebLink};

/// The registrations of a directory. No clock, no network.
#[derive(Debug, Default)]
pub struct ResourceDirectory {
    /// By their number, which is a part of their path.
    entries: BTreeMap<u64, Entry>,
    by_name: HashMap<EndpointName, u64>,
    /// Bytes that the registrations take in memory.
    bytes: usize,
    next: u64,
    refused: u64,
}

/// An endpoint's name, unique within its sector (RFC 9176 §4.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointName {
    /// `ep`
    pub endpoint: String,
    /// `d`; empty for the default sector.
    pub sector: String,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub name: EndpointName,
    /// The URI that relative links are resolved against.
    pub base: String,
    /// Whether the endpoint named it; else it is where its last request came from.
    names_base: bool,
    pub lifetime: Duration,
    pub expires: Instant,
    /// Further attributes of the endpoint.
    pub attributes: Vec<(String, String)>,
    pub links: Vec<WebLink>,
    bytes: usize,
}

impl Entry {
    /// Bytes in memory: those of the texts, and of what holds them.
    fn footprint(base: &str, attributes: &[(String, String)], links: &[WebLink]) -> usize {
        let of_attributes: usize = attributes.iter().map(|(name, value)| TEXTS_BYTES + name.len() + value.len()).sum();
        let of_link = |link: &WebLink| {
            let texts = link.attributes.iter();
            let texts = texts.map(|(name, value)| TEXTS_BYTES + name.len() + value.as_ref().map_or(0, String::len));
            TEXTS_BYTES + link.target.len() + texts.sum::<usize>()
        };
        ENTRY_BYTES + base.len() + of_attributes + links.iter().map(of_link).sum::<usize>()
    }
}

/// Why a registration is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryError {
    /// A parameter or the payload is wrong, and why.
    Bad(String),
    /// There is no such registration.
    Unknown,
    /// The directory is full; ask again after this time, when the first registration ends.
    Full(Duration),
    /// More links pass than one answer has.
    Long,
}

/// What a directory holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectoryCounts {
    /// Registrations.
    pub registrations: usize,
    /// Bytes that they take in memory, with their links and attributes.
    pub bytes: usize,
    /// Registrations that found no place.
    pub refused: u64,
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectoryError::Bad(reason) => f.write_str(reason),
            DirectoryError::Unknown => f.write_str("there is no such registration; register anew"),
            DirectoryError::Full(_) => f.write_str("the directory is full"),
            DirectoryError::Long => f.write_str("more than 2 MiB of links; ask with page and count, or for less"),
        }
    }
}

impl std::error::Error for DirectoryError {}

/// The parameters of a registration (RFC 9176 §5).
#[derive(Debug, Default)]
struct Parameters {
    name: Option<EndpointName>,
    base: Option<String>,
    lifetime: Option<Duration>,
    attributes: Vec<(String, String)>,
}

impl Parameters {
    fn read<'a>(queries: impl Iterator<Item = &'a str>) -> Result<Parameters, DirectoryError> {
        let bad = |reason: String| DirectoryError::Bad(reason);
        let mut read = Parameters::default();
        let (mut endpoint, mut sector) = (None, None);
        for argument in queries {
            let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
            match name {
                "ep" | "d" => {
                    if value.is_empty() || value.len() > NAME_MAX_BYTES || value.chars().any(char::is_control) {
                        return Err(bad(format!("{name} is a name of 1 to {NAME_MAX_BYTES} bytes")));
                    }
                    let place = if name == "ep" { &mut endpoint } else { &mut sector };
                    if place.replace(value.to_owned()).is_some() {
                        return Err(bad(format!("{name} stands there twice")));
                    }
                }
                "lt" => {
                    let seconds = value.parse::<u32>().ok().filter(|seconds| *seconds > 0);
                    let seconds =
                        seconds.ok_or_else(|| bad("lt is a number of seconds, 1 to 4294967295".to_owned()))?;
                    read.lifetime = Some(Duration::from_secs(seconds.into()));
                }
                "base" => {
                    let is_uri = ["coap://", "coaps://", "coap+tcp://", "coaps+tcp://", "coap+ws://", "coaps+ws://"]
                        .iter()
                        .any(|scheme| value.len() > scheme.len() && value.starts_with(scheme));
                    if !is_uri || value.contains(['<', '>', '"', ' ', '?', '#']) {
                        return Err(bad("base is a URI of CoAP such as coap://[2001:db8::1]:61616".to_owned()));
                    }
                    read.base = Some(value.trim_end_matches('/').to_owned());
                }
                _ if !link_format::is_attribute_name(name) => {
                    return Err(bad(format!("{name:?} is no name of an attribute")));
                }
                _ if value.contains(['"', '\\']) || value.chars().any(char::is_control) => {
                    return Err(bad(format!("{name} has letters that no attribute has")));
                }
                _ => read.attributes.push((name.to_owned(), value.to_owned())),
            }
        }
        check_count(&read.attributes)?;
        let sector = sector.unwrap_or_default();
        read.name = endpoint.map(|endpoint| EndpointName { endpoint, sector });
        Ok(read)
    }
}

impl ResourceDirectory {
    /// A directory without registrations.
    pub fn new() -> ResourceDirectory {
        ResourceDirectory::default()
    }

    /// Registers links, or replaces those of the same endpoint, which keeps its number. `source` is the base of a
    /// registration that names none. Returns the number of the registration and whether it is new.
    ///
    /// # Errors
    /// What is wrong with the parameters or the links, or that there is no room.
    pub fn handle_registration<'a>(
        &mut self,
        now: Instant,
        queries: impl Iterator<Item = &'a str>,
        payload: &[u8],
        source: Option<&str>,
    ) -> Result<(u64, bool), DirectoryError> {
        self.handle_timeout(now);
        let Parameters { name, base, lifetime, attributes } = Parameters::read(queries)?;
        let name = name.ok_or_else(|| DirectoryError::Bad("ep is needed: the endpoint's name".to_owned()))?;
        let names_base = base.is_some();
        let base = base.or_else(|| source.map(str::to_owned));
        let base = base.ok_or_else(|| DirectoryError::Bad("base is needed: the endpoint's URI".to_owned()))?;
        let links = read_links(payload)?;
        let known = self.by_name.get(&name).copied();
        let old_bytes = known.and_then(|number| self.entries.get(&number)).map_or(0, |entry| entry.bytes);
        let bytes = Entry::footprint(&base, &attributes, &links);
        let is_full = known.is_none() && self.entries.len() >= REGISTRATIONS_MAX;
        if is_full || self.bytes - old_bytes + bytes > BYTES_MAX {
            return Err(self.refuse(now));
        }
        let number = known.unwrap_or_else(|| {
            self.next += 1;
            self.next
        });
        self.bytes = self.bytes - old_bytes + bytes;
        let lifetime = lifetime.unwrap_or(LIFETIME);
        self.by_name.insert(name.clone(), number);
        let expires = now + lifetime;
        let entry = Entry { name, base, names_base, lifetime, expires, attributes, links, bytes };
        self.entries.insert(number, entry);
        Ok((number, known.is_none()))
    }

    /// Refreshes a registration, with another lifetime, base or attributes if they are given; `source` is its base if none ever was (RFC
    /// 9176 §5.3.1).
    ///
    /// # Errors
    /// When there is no such registration, a parameter is wrong, or there is no room.
    pub fn handle_update<'a>(
        &mut self,
        now: Instant,
        number: u64,
        queries: impl Iterator<Item = &'a str>,
        source: Option<&str>,
    ) -> Result<(), DirectoryError> {
        self.handle_timeout(now);
        let parameters = Parameters::read(queries)?;
        if parameters.name.is_some() {
            return Err(DirectoryError::Bad("ep and d cannot be changed; register anew".to_owned()));
        }
        let entry = self.entries.get(&number).ok_or(DirectoryError::Unknown)?;
        let names_base = entry.names_base || parameters.base.is_some();
        let source = source.filter(|_| !names_base).map(str::to_owned);
        let base = parameters.base.or(source).unwrap_or_else(|| entry.base.clone());
        let is_kept = |(known, _): &&(String, String)| parameters.attributes.iter().all(|(name, _)| name != known);
        let mut attributes: Vec<(String, String)> = entry.attributes.iter().filter(is_kept).cloned().collect();
        attributes.extend(parameters.attributes);
        check_count(&attributes)?;
        let bytes = Entry::footprint(&base, &attributes, &entry.links);
        let old_bytes = entry.bytes;
        if self.bytes - old_bytes + bytes > BYTES_MAX {
            return Err(self.refuse(now));
        }
        let entry = self.entries.get_mut(&number).ok_or(DirectoryError::Unknown)?;
        entry.lifetime = parameters.lifetime.unwrap_or(entry.lifetime);
        (entry.base, entry.names_base) = (base, names_base);
        (entry.attributes, entry.bytes) = (attributes, bytes);
        entry.expires = now + entry.lifetime;
        self.bytes = self.bytes - old_bytes + bytes;
        Ok(())
    }

    /// Ends a registration.
    ///
    /// # Errors
    /// When there is none.
    pub fn handle_removal(&mut self, now: Instant, number: u64) -> Result<(), DirectoryError> {
        self.handle_timeout(now);
        self.forget(number).map(drop).ok_or(DirectoryError::Unknown)
    }

    /// Forgets registrations whose lifetime is over.
    pub fn handle_timeout(&mut self, now: Instant) {
        let over: Vec<u64> =
            self.entries.iter().filter(|(_, entry)| entry.expires <= now).map(|(number, _)| *number).collect();
        over.into_iter().for_each(|number| drop(self.forget(number)));
    }

    /// What it holds.
    pub fn counts(&self) -> DirectoryCounts {
        DirectoryCounts { registrations: self.entries.len(), bytes: self.bytes, refused: self.refused }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.iter().map(|(number, entry)| (*number, entry))
    }

    pub(super) fn entry(&self, number: u64) -> Option<&Entry> {
        self.entries.get(&number)
    }

    fn refuse(&mut self, now: Instant) -> DirectoryError {
        self.refused += 1;
        let first = self.entries.values().map(|entry| entry.expires.since(now)).min();
        DirectoryError::Full(first.unwrap_or(LIFETIME))
    }

    fn forget(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.remove(&number)?;
        self.by_name.remove(&entry.name);
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

fn check_count(attributes: &[(String, String)]) -> Result<(), DirectoryError> {
    if attributes.len() > ATTRIBUTES_MAX {
        let reason = format!("at most {ATTRIBUTES_MAX} attributes are registered, not {}", attributes.len());
        return Err(DirectoryError::Bad(reason));
    }
    Ok(())
}

fn read_links(payload: &[u8]) -> Result<Vec<WebLink>, DirectoryError> {
    let bad = |reason: String| DirectoryError::Bad(reason);
    let text = std::str::from_utf8(payload).map_err(|_| bad("the links are not UTF-8".to_owned()))?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let links = link_format::parse(text).map_err(|error| bad(format!("the payload is no link format: {error}")))?;
    if links.len() > LINKS_MAX {
        return Err(bad(format!("at most {LINKS_MAX} links are registered, not {}", links.len())));
    }
    Ok(links)
}

/// Of a registration that names none (RFC 9176 §5).
const LIFETIME: Duration = Duration::from_secs(90_000);
/// RFC 9176 §5: names of up to 63 bytes.
const NAME_MAX_BYTES: usize = 63;
/// Chosen by us: with [`BYTES_MAX`] this bounds memory, also for endpoints without links.
const REGISTRATIONS_MAX: usize = 16_384;
const BYTES_MAX: usize = 16 << 20;
/// Bytes of an entry beside its base, attributes and links, counted generously.
const ENTRY_BYTES: usize = 512;
/// Bytes of what holds a name and its value, or a target, beside their letters.
const TEXTS_BYTES: usize = size_of::<(String, Option<String>)>();
const LINKS_MAX: usize = 1024;
const ATTRIBUTES_MAX: usize = 32;
