//! Registrations with their lifetimes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use thalweg_base::time::Instant;

use super::base::RegistrationBase;
use super::parameters::{Parameters, check_count};
use super::registrant::Registrant;
use super::room::Newcomer;
use crate::identity::Caller;
use crate::link_format::{self, WebLink};

/// The registrations of a directory. No clock, no network.
///
/// A registration belongs to the client that made it until it ends; [the module](crate::directory) has the rules, and says who
/// makes room where there is none. A request without a `caller` is one of this program itself.
#[derive(Debug, Default)]
pub struct ResourceDirectory {
    /// By their number, which is a part of their path.
    entries: BTreeMap<u64, Entry>,
    by_name: HashMap<EndpointName, u64>,
    /// Makes the keys of locations.
    keys: RandomState,
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

/// Where a registration is refreshed and removed: `/rd/NUMBER/KEY`. Lookups tell the number alone, and nobody can guess the
/// key, which is none of an earlier run of the directory either.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegistrationLocation {
    number: u64,
    key: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub name: EndpointName,
    pub base: RegistrationBase,
    pub registrant: Registrant,
    /// Whether the registrant was at the address that it is remembered by.
    pub has_proved_address: bool,
    pub lifetime: Duration,
    pub expires: Instant,
    /// Further attributes of the endpoint.
    pub attributes: Vec<(String, String)>,
    pub links: Vec<WebLink>,
    /// Bytes that it takes in memory.
    pub bytes: usize,
}

impl RegistrationLocation {
    /// The part of its path that lookups tell.
    pub(super) fn number(&self) -> String {
        self.number.to_string()
    }

    /// The part of its path that nobody else is told.
    pub(super) fn key(&self) -> String {
        format!("{:016x}", self.key)
    }
}

impl fmt::Display for RegistrationLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/rd/{}/{}", self.number(), self.key())
    }
}

/// Without the key, which is no matter of logs.
impl fmt::Debug for RegistrationLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RegistrationLocation({})", self.number)
    }
}

impl Entry {
    /// Bytes in memory: those of the texts, and of what holds them.
    fn footprint(
        base: &RegistrationBase,
        registrant: &Registrant,
        attributes: &[(String, String)],
        links: &[WebLink],
    ) -> usize {
        let of_attributes: usize = attributes.iter().map(|(name, value)| TEXTS_BYTES + name.len() + value.len()).sum();
        let of_link = |link: &WebLink| {
            let texts = link.attributes.iter();
            let texts = texts.map(|(name, value)| TEXTS_BYTES + name.len() + value.as_ref().map_or(0, String::len));
            TEXTS_BYTES + link.target.len() + texts.sum::<usize>()
        };
        let of_links = links.iter().map(of_link).sum::<usize>();
        ENTRY_BYTES + base.uri.len() + registrant.bytes() + of_attributes + of_links
    }
}

/// Why a registration is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryError {
    /// A parameter or the payload is wrong, and why.
    Bad(String),
    /// There is no such registration.
    Unknown,
    /// The registration belongs to a client that proved an identity, and this one proved none.
    Unauthorized,
    /// The registration belongs to another client.
    Forbidden,
    /// So many registrations came from addresses that may be forged that the client has to prove its own.
    Unproved,
    /// The directory is full, or the part of it that the client's host may have without a proof; ask again after this time, when
    /// the first registration ends or may make room.
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
            DirectoryError::Unauthorized => {
                f.write_str("the registration needs the identity that made it: DTLS, TLS or OSCORE")
            }
            DirectoryError::Forbidden => {
                f.write_str("the registration is another client's until it ends, and is changed at its location alone")
            }
            DirectoryError::Unproved => f.write_str(
                "too many registrations came from addresses that may be forged; ask again with the Echo value",
            ),
            DirectoryError::Full(_) => f.write_str("the directory is full, or your host's part of it"),
            DirectoryError::Long => f.write_str("more than 2 MiB of links; ask with page and count, or for less"),
        }
    }
}

impl std::error::Error for DirectoryError {}

impl ResourceDirectory {
    /// A directory without registrations.
    pub fn new() -> ResourceDirectory {
        ResourceDirectory::default()
    }

    /// Registers links, or replaces those of the same endpoint, which keeps its location. Where the query names no base, it is
    /// the address of `caller` (RFC 9176 §5). Returns the location and whether it is new.
    ///
    /// # Errors
    /// What is wrong with the parameters or the links, that there is no room, that the client has to prove its address, or that the
    /// registration belongs to another.
    pub fn handle_registration<'a>(
        &mut self,
        now: Instant,
        caller: Option<&Caller>,
        queries: impl Iterator<Item = &'a str>,
        payload: &[u8],
    ) -> Result<(RegistrationLocation, bool), DirectoryError> {
        self.handle_timeout(now);
        let parameters = Parameters::read(queries)?;
        let name = parameters.name()?;
        let known = self.by_name.get(&name).copied();
        let (registrant, old_bytes, was_proved) = match known.and_then(|number| self.entries.get(&number)) {
            Some(entry) => {
                (admitted(&entry.registrant, caller, Registrant::admit)?, entry.bytes, entry.has_proved_address)
            }
            None => (Registrant::of(caller), 0, false),
        };
        let has_proved_address = caller.is_none_or(|caller| caller.has_proved_address);
        let base = match (parameters.base, caller) {
            (Some(uri), _) => RegistrationBase::named(uri, caller)?,
            (None, Some(caller)) => RegistrationBase::of_source(caller),
            (None, None) => return Err(DirectoryError::Bad("base is needed: the endpoint's URI".to_owned())),
        };
        let (attributes, links) = (parameters.attributes, read_links(payload)?);
        let bytes = Entry::footprint(&base, &registrant, &attributes, &links);
        if known.is_none() || bytes > old_bytes || was_proved && !has_proved_address {
            self.make_room(now, &Newcomer { registrant: &registrant, has_proved_address, known, bytes })?;
        }
        let number = known.unwrap_or_else(|| {
            self.next += 1;
            self.next
        });
        self.bytes = self.bytes - old_bytes + bytes;
        let lifetime = parameters.lifetime.unwrap_or(LIFETIME);
        self.by_name.insert(name.clone(), number);
        let expires = now + lifetime;
        let entry = Entry { name, base, registrant, has_proved_address, lifetime, expires, attributes, links, bytes };
        self.entries.insert(number, entry);
        Ok((self.location_of(number), known.is_none()))
    }

    /// Refreshes a registration, with another lifetime, base or attributes if they are given; its base is the address of
    /// `caller` if none ever was named (RFC 9176 §5.3.1).
    ///
    /// # Errors
    /// When there is no such registration, it belongs to another, a parameter is wrong, or there is no room.
    pub fn handle_update<'a>(
        &mut self,
        now: Instant,
        caller: Option<&Caller>,
        location: RegistrationLocation,
        queries: impl Iterator<Item = &'a str>,
    ) -> Result<(), DirectoryError> {
        self.handle_timeout(now);
        let parameters = Parameters::read(queries)?;
        let entry = self.located(location)?;
        let registrant = admitted(&entry.registrant, caller, Registrant::admit_at_location)?;
        // Who knows the location was told it at the address that is remembered; another address may be forged.
        let has_proved_address =
            caller.is_none_or(|caller| caller.has_proved_address) || registrant.host() == entry.registrant.host();
        let is_weaker = entry.has_proved_address && !has_proved_address;
        if parameters.has_name() {
            return Err(DirectoryError::Bad("ep and d cannot be changed; register anew".to_owned()));
        }
        let base = match (parameters.base, caller) {
            (Some(uri), _) => RegistrationBase::named(uri, caller)?,
            (None, Some(caller)) if !entry.base.is_named => RegistrationBase::of_source(caller),
            (None, _) => entry.base.clone(),
        };
        let is_kept = |(known, _): &&(String, String)| parameters.attributes.iter().all(|(name, _)| name != known);
        let mut attributes: Vec<(String, String)> = entry.attributes.iter().filter(is_kept).cloned().collect();
        attributes.extend(parameters.attributes);
        check_count(&attributes)?;
        let bytes = Entry::footprint(&base, &registrant, &attributes, &entry.links);
        let old_bytes = entry.bytes;
        if bytes > old_bytes || is_weaker {
            let known = Some(location.number);
            self.make_room(now, &Newcomer { registrant: &registrant, has_proved_address, known, bytes })?;
        }
        let entry = self.entries.get_mut(&location.number).ok_or(DirectoryError::Unknown)?;
        entry.lifetime = parameters.lifetime.unwrap_or(entry.lifetime);
        (entry.base, entry.registrant, entry.has_proved_address) = (base, registrant, has_proved_address);
        (entry.attributes, entry.bytes) = (attributes, bytes);
        entry.expires = now + entry.lifetime;
        self.bytes = self.bytes - old_bytes + bytes;
        Ok(())
    }

    /// Ends a registration.
    ///
    /// # Errors
    /// When there is none, or it belongs to another.
    pub fn handle_removal(
        &mut self,
        now: Instant,
        caller: Option<&Caller>,
        location: RegistrationLocation,
    ) -> Result<(), DirectoryError> {
        self.handle_timeout(now);
        admitted(&self.located(location)?.registrant, caller, Registrant::admit_at_location)?;
        self.forget(location.number).map(drop).ok_or(DirectoryError::Unknown)
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

    pub(super) fn entry(&self, location: RegistrationLocation) -> Option<&Entry> {
        self.entries.get(&location.number)
    }

    /// Where the registration of this number is kept up, if there is one.
    pub(super) fn location(&self, number: u64) -> Option<RegistrationLocation> {
        self.entries.contains_key(&number).then(|| self.location_of(number))
    }

    fn location_of(&self, number: u64) -> RegistrationLocation {
        RegistrationLocation { number, key: self.keys.hash_one(number) }
    }

    fn located(&self, location: RegistrationLocation) -> Result<&Entry, DirectoryError> {
        let found = self.entries.get(&location.number).filter(|_| self.location_of(location.number) == location);
        found.ok_or(DirectoryError::Unknown)
    }

    pub(super) fn note_refused(&mut self) {
        self.refused += 1;
    }

    pub(super) fn refuse(&mut self, now: Instant) -> DirectoryError {
        self.note_refused();
        let first = self.entries.values().map(|entry| entry.stays_until().since(now)).min();
        DirectoryError::Full(first.unwrap_or(LIFETIME))
    }

    pub(super) fn forget(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.remove(&number)?;
        self.by_name.remove(&entry.name);
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

/// Who is remembered of a registration from now on, if its registrant admits this client.
fn admitted(
    registrant: &Registrant,
    caller: Option<&Caller>,
    admit: impl FnOnce(&Registrant, &Registrant) -> Result<(), DirectoryError>,
) -> Result<Registrant, DirectoryError> {
    let client = Registrant::of(caller);
    admit(registrant, &client)?;
    Ok(registrant.followed_by(client))
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
pub(super) const LIFETIME: Duration = Duration::from_secs(90_000);
/// Bytes of an entry beside its base, attributes and links, counted generously.
const ENTRY_BYTES: usize = 512;
/// Bytes of what holds a name and its value, or a target, beside their letters.
const TEXTS_BYTES: usize = size_of::<(String, Option<String>)>();
const LINKS_MAX: usize = 1024;
