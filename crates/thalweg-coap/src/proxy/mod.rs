//! Proxies with a cache: forward, to where the request says (RFC 7252 §5.7.2), and reverse, below a path (§5.7.3).
//!
//! GET is answered from the network store while it is fresh, and requests for the same resource at the same time become one.
//! Other methods go through; what they change is forgotten. Registrations are not passed on: their clients get a plain
//! response.

mod destinations;
mod relay;
#[cfg(test)]
mod tests;
mod uri;

pub use destinations::{BadDestination, Destinations};
pub use relay::{ForwardProxy, Relay, ReverseProxy};
pub(crate) use uri::escaped;
pub use uri::{BadProxyUri, ProxyUri};
