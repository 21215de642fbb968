//! Cookies that prove an address before a handshake takes memory (RFC 6347 §4.2.1).
//!
//! dimpl draws a secret for the cookies of each connection, so that a connection has to exist before its cookie. Here the
//! server checks cookies of its own first, and makes the connection believe the one that it checked.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use dimpl::crypto::{CryptoProvider, HashAlgorithm, HmacProvider, rust_crypto};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thalweg_base::time::Instant;

use super::hello::ClientHello;

/// Makes and checks cookies; keeps nothing of whom it gave one.
pub struct Cookies {
    secret: [u8; 16],
}

impl Cookies {
    pub fn new(secret: [u64; 2]) -> Cookies {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&secret[0].to_be_bytes());
        bytes[8..].copy_from_slice(&secret[1].to_be_bytes());
        Cookies { secret: bytes }
    }

    /// The cookie for a client at this address now.
    pub fn make(&self, now: Instant, from: SocketAddr, hello: &ClientHello<'_>) -> [u8; 32] {
        self.compute(period(now), from, hello)
    }

    /// Whether a ClientHello returns a cookie that its address was given in this period or the one before.
    pub fn is_valid(&self, now: Instant, from: SocketAddr, hello: &ClientHello<'_>) -> bool {
        let this = period(now);
        hello.cookie.len() == 32 && [this, this.wrapping_sub(1)].iter().any(|at| self.verify(*at, from, hello))
    }

    fn verify(&self, period: u64, from: SocketAddr, hello: &ClientHello<'_>) -> bool {
        self.mac(period, from, hello).verify_slice(hello.cookie).is_ok()
    }

    fn compute(&self, period: u64, from: SocketAddr, hello: &ClientHello<'_>) -> [u8; 32] {
        self.mac(period, from, hello).finalize().into_bytes().into()
    }

    fn mac(&self, period: u64, from: SocketAddr, hello: &ClientHello<'_>) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("HMAC takes keys of any length");
        mac.update(&period.to_be_bytes());
        match from.ip() {
            IpAddr::V4(ip) => mac.update(&ip.octets()),
            IpAddr::V6(ip) => mac.update(&ip.octets()),
        }
        mac.update(&from.port().to_be_bytes());
        mac.update(hello.random);
        mac.update(hello.suites);
        mac
    }
}

/// A cookie is valid for one to two of these.
const PERIOD: Duration = Duration::from_secs(30);

fn period(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos() as u64
}

/// The algorithms of RustCrypto, whose HMAC gives the cookie that was checked while [`believing`] runs.
pub fn provider() -> CryptoProvider {
    CryptoProvider { hmac_provider: &CheckedCookies, ..rust_crypto::default_provider() }
}

/// Runs `handle`, in which a connection takes `cookie` for the one that it would have made.
pub fn believing<R>(cookie: [u8; 32], handle: impl FnOnce() -> R) -> R {
    CHECKED.set(Some(cookie));
    let result = handle();
    CHECKED.set(None);
    result
}

thread_local! {
    static CHECKED: Cell<Option<[u8; 32]>> = const { Cell::new(None) };
}

/// HMAC for dimpl, which calls `hmac_sha256` for cookies and `hmac` for everything else.
#[derive(Debug)]
struct CheckedCookies;

impl HmacProvider for CheckedCookies {
    fn hmac_sha256(&self, key: &[u8], data: &[u8]) -> Result<[u8; 32], dimpl::CryptoError> {
        if let Some(cookie) = CHECKED.get() {
            return Ok(cookie);
        }
        let mut out = [0; 32];
        self.hmac(HashAlgorithm::SHA256, key, data, &mut out)?;
        Ok(out)
    }

    fn hmac(&self, hash: HashAlgorithm, key: &[u8], data: &[u8], out: &mut [u8]) -> Result<usize, dimpl::CryptoError> {
        rust_crypto::default_provider().hmac_provider.hmac(hash, key, data, out)
    }
}
