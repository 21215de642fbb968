//! The resource directory of a network: who has which resources (RFC 9176), as server and as client.
//!
//! [`ResourceDirectory`] is the registrations alone, without clock and network; [`DirectoryHandler`] serves one, and
//! [`Registration`] keeps the resources of this thing registered at another's.
//!
//! # To whom a registration belongs
//!
//! First come, first remembered (RFC 9176 §7.5): a name in its sector is free until somebody registers it, and again when that
//! registration ends. Until then:
//!
//! | the registrant proved | who may register the name anew | who may refresh and remove it |
//! |---|---|---|
//! | the key of an identity, a certificate or an OSCORE context | who proves all the same | the same, at the location |
//! | nothing | who asks from the same address, or proves an identity | who knows the location |
//!
//! A client that proves nothing where a proof is needed is answered 4.01, and another one 4.03. The location has a part that
//! nobody can guess and no lookup tells. It stands for the address, which may change while a registration lasts (RFC 9176
//! §8.2). Over plain UDP an address may be forged, and a location overheard: names that matter are registered under keys.
//!
//! # Who makes room
//!
//! A directory has 16,384 registrations in 16 MiB. Clients of one host (an IPv4 address, 64 bits of an IPv6 one) that prove nothing
//! have a quarter of both. Where there is no room, registrations without a proof go, the one that was refreshed longest ago
//! first: those that nobody refreshed for 90,000 s, whatever their lifetime, and any of them for a client that proves an identity.
//! An endpoint whose registration went is told 4.04 with its next refresh, and registers anew.
//!
//! Over plain UDP a source address may be forged, and a registration from one costs its sender a datagram. All that came from such
//! addresses have an eighth together; beyond it a client is answered 4.01 with an Echo value (RFC 9175), with which it asks
//! again. They are the first to make room for a client at an address that is proved: by that value, by a refresh at the
//! location, over a connection or in a session, or on the directory's own host.

mod base;
mod client;
mod lookup;
mod parameters;
mod registrant;
mod registrations;
mod room;
mod server;
#[cfg(test)]
mod tests;

pub use client::{Registration, RegistrationPlan};
pub use registrations::{DirectoryCounts, DirectoryError, EndpointName, RegistrationLocation, ResourceDirectory};
pub use server::DirectoryHandler;
