//! Which pages may connect.

use std::net::IpAddr;

use thalweg_base::wildcards::fits_wildcards;

/// Lets in programs, which tell no origin, and those pages that the user trusts. Browsers let every page that is open connect to this host,
/// and say where it came from.
#[derive(Clone, Debug, Default)]
pub struct Visitors {
    trusted: Vec<String>,
}

impl Visitors {
    /// Trusts pages of this host, Foxglove's own ones, and those whose origin fits one of these, with the wildcards `*` and `?`.
    pub fn new(trusted: Vec<String>) -> Visitors {
        Visitors { trusted }
    }

    /// Whether a client may connect that names this origin, and this host as the one that it asks.
    pub fn has(&self, origin: Option<&str>, host: Option<&str>) -> bool {
        let Some(origin) = origin else { return true };
        if FOXGLOVE.contains(&origin) || self.trusted.iter().any(|pattern| fits_wildcards(pattern, origin)) {
            return true;
        }
        let Some(page) = host_of_origin(origin) else { return false };
        // A name could have been led here by whoever owns it; an address could not.
        let is_this_host = page.parse::<IpAddr>().is_ok() && host.map(without_port) == Some(page);
        page == "localhost" || page.parse().is_ok_and(|address: IpAddr| address.is_loopback()) || is_this_host
    }
}

/// The host of `scheme://host:port`, without the brackets of an address.
fn host_of_origin(origin: &str) -> Option<&str> {
    let (scheme, rest) = origin.split_once("://")?;
    matches!(scheme, "http" | "https").then(|| without_port(rest))
}

/// A host without its port and without brackets.
fn without_port(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Pages of Foxglove, and of programs that bring their pages along, as the desktop programs of Foxglove and Lichtblick do.
const FOXGLOVE: [&str; 2] = ["https://app.foxglove.dev", "file://"];
