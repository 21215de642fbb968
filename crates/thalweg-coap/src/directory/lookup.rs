//! Lookups of resources and endpoints (RFC 9176 §6).

use std::rc::Rc;

use super::DirectoryError;
use super::registrations::{Entry, ResourceDirectory};
use crate::identity::Caller;
use crate::link_format::{WebLink, resolve};

/// What is looked up: filters that all have to hold, and the page.
#[derive(Debug, Default)]
struct Wanted<'a> {
    filters: Vec<&'a str>,
    page: Option<usize>,
    count: Option<usize>,
}

impl<'a> Wanted<'a> {
    fn read(queries: impl Iterator<Item = &'a str>) -> Result<Wanted<'a>, DirectoryError> {
        let mut wanted = Wanted::default();
        let number = |name: &str, value: &str| {
            value.parse::<usize>().map_err(|_| DirectoryError::Bad(format!("{name} is a whole number")))
        };
        for argument in queries {
            match argument.split_once('=') {
                Some(("page", value)) => wanted.page = Some(number("page", value)?),
                Some(("count", value)) => wanted.count = Some(number("count", value)?),
                _ => wanted.filters.push(argument),
            }
        }
        if wanted.filters.len() > FILTERS_MAX {
            return Err(DirectoryError::Bad(format!("at most {FILTERS_MAX} filters are understood")));
        }
        if wanted.page.is_some() && wanted.count.is_none() {
            return Err(DirectoryError::Bad("page needs count: the number of links of a page".to_owned()));
        }
        Ok(wanted)
    }

    fn page_of(&self, links: impl Iterator<Item = WebLink>) -> Result<Vec<WebLink>, DirectoryError> {
        let most = self.count.unwrap_or(usize::MAX);
        let skipped = self.page.unwrap_or(0).saturating_mul(most);
        let (mut page, mut bytes) = (Vec::new(), 0);
        for link in links.skip(skipped).take(most) {
            bytes += footprint(&link);
            if bytes > ANSWER_BYTES_MAX {
                return Err(DirectoryError::Long);
            }
            page.push(link);
        }
        Ok(page)
    }
}

impl ResourceDirectory {
    /// Links that pass the query, with absolute targets and anchors (RFC 9176 §6.1). Each filter has to be passed by the link or
    /// by its endpoint, whose `href` is the path of the registration (RFC 9176 §6.2). Links of an endpoint with a link-local
    /// address are shown to a `caller` on its link.
    ///
    /// # Errors
    /// When `page` or `count` is no number, `page` comes without `count`, there are more than 16 filters, or the links are more
    /// than one answer has.
    pub fn find_resources<'a>(
        &self,
        caller: Option<&Caller>,
        queries: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<WebLink>, DirectoryError> {
        let wanted = Wanted::read(queries)?;
        let links = self.entries_for(caller).flat_map(|(number, entry)| {
            let of_endpoint = Rc::new(endpoint_link(number, entry));
            entry.links.iter().map(move |link| (resolved(link, entry), Rc::clone(&of_endpoint)))
        });
        let passes = |(link, endpoint): &(WebLink, Rc<WebLink>)| {
            wanted.filters.iter().all(|filter| link.matches(filter) || endpoint.matches(filter))
        };
        wanted.page_of(links.filter(passes).map(|(link, _)| link))
    }

    /// Endpoints that pass the query, themselves or by one of their links (RFC 9176 §6.2), as far as they are shown to
    /// `caller`.
    ///
    /// # Errors
    /// As [`find_resources`](Self::find_resources).
    pub fn find_endpoints<'a>(
        &self,
        caller: Option<&Caller>,
        queries: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<WebLink>, DirectoryError> {
        let wanted = Wanted::read(queries)?;
        let passes = |entry: &Entry, endpoint: &WebLink| {
            let mut others = wanted.filters.iter().filter(|filter| !endpoint.matches(filter)).peekable();
            if others.peek().is_none() {
                return true;
            }
            // Once for all filters: it costs more than to compare.
            let links: Vec<WebLink> = entry.links.iter().map(|link| resolved(link, entry)).collect();
            others.all(|filter| links.iter().any(|link| link.matches(filter)))
        };
        let found = self.entries_for(caller).map(|(number, entry)| (entry, endpoint_link(number, entry)));
        wanted.page_of(found.filter(|(entry, link)| passes(entry, link)).map(|(_, link)| link))
    }

    fn entries_for(&self, caller: Option<&Caller>) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries().filter(move |(_, entry)| entry.base.is_shown_to(caller))
    }
}

/// Bytes that a link takes in an answer, some more than its letters.
fn footprint(link: &WebLink) -> usize {
    let texts = link.attributes.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, String::len) + 4);
    link.target.len() + 3 + texts.sum::<usize>()
}

/// The link to a registration, with the attributes of its endpoint.
fn endpoint_link(number: u64, entry: &Entry) -> WebLink {
    let link = WebLink::new(format!("/rd/{number}")).with("ep", &entry.name.endpoint);
    let link = if entry.name.sector.is_empty() { link } else { link.with("d", &entry.name.sector) };
    let link = link.with("base", &entry.base.uri).with("rt", "core.rd-ep");
    entry.attributes.iter().fold(link, |link, (name, value)| match value.is_empty() {
        true => link.with_flag(name),
        false => link.with(name, value),
    })
}

/// A link as it is seen from elsewhere: target and anchor are resolved against the base, and the rest stays as it is.
fn resolved(link: &WebLink, entry: &Entry) -> WebLink {
    let mut resolved = WebLink::new(resolve(&entry.base.uri, &link.target));
    for (name, value) in &link.attributes {
        let value = match (name.as_str(), value) {
            ("anchor", Some(anchor)) => Some(resolve(&entry.base.uri, anchor)),
            (_, value) => value.clone(),
        };
        resolved.attributes.push((name.clone(), value));
    }
    resolved
}

/// Filters of one request. A message has room for hundreds, each of which would be compared with all links while nobody else gets
/// at the directory.
const FILTERS_MAX: usize = 16;
/// Bytes of one answer: what a client of ours takes. Each link and anchor gets its endpoint's base, so that a full directory would
/// be told in many times the bytes that it holds.
const ANSWER_BYTES_MAX: usize = 2 << 20;
