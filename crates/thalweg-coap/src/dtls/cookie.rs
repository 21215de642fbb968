//! Cookies that prove an address before a handshake takes memory (RFC 6347 §4.2.1, RFC 9147 §5.1).
//!
//! dimpl draws a secret for the cookies of each connection, so that a connection has to exist before its cookie. Here the
//! server checks cookies of its own first, and makes the connection believe the one that it checked.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use dimpl::CryptoError;
use dimpl::crypto::{
    Buf, CryptoProvider, HashAlgorithm, HmacProvider, KeyProvider, SignatureAlgorithm, SigningKey, rust_crypto,
};
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

    /// The cookie of DTLS 1.3 for a client at this address now: how much padding its message has, and what proves the rest of
    /// the message as well.
    pub fn make_retry(&self, now: Instant, from: SocketAddr, first: &ClientHello<'_>) -> [u8; 32] {
        let mut cookie = [0; 32];
        cookie[..PADDING_BYTES].copy_from_slice(&first.padding.unwrap_or(NO_PADDING).to_be_bytes());
        let mac = self.retry_mac(period(now), from, first, &cookie[..PADDING_BYTES]);
        let mac: [u8; 32] = mac.finalize().into_bytes().into();
        cookie[PADDING_BYTES..].copy_from_slice(&mac[..32 - PADDING_BYTES]);
        cookie
    }

    /// Whether a cookie of DTLS 1.3 was given to this address in this period or the one before, for a message that differs from
    /// `hello` in cookie and padding alone.
    pub fn is_valid_retry(&self, now: Instant, from: SocketAddr, hello: &ClientHello<'_>, cookie: &[u8]) -> bool {
        let Some((padding, mac)) = cookie.split_at_checked(PADDING_BYTES).filter(|_| cookie.len() == 32) else {
            return false;
        };
        let this = period(now);
        [this, this.wrapping_sub(1)]
            .into_iter()
            .any(|at| self.retry_mac(at, from, hello, padding).verify_truncated_left(mac).is_ok())
    }

    fn verify(&self, period: u64, from: SocketAddr, hello: &ClientHello<'_>) -> bool {
        self.mac(period, from, hello).verify_slice(hello.cookie).is_ok()
    }

    fn compute(&self, period: u64, from: SocketAddr, hello: &ClientHello<'_>) -> [u8; 32] {
        self.mac(period, from, hello).finalize().into_bytes().into()
    }

    fn mac(&self, period: u64, from: SocketAddr, hello: &ClientHello<'_>) -> Hmac<Sha256> {
        let mut mac = self.address_mac(b"", period, from);
        mac.update(hello.random);
        mac.update(hello.suites);
        mac
    }

    fn retry_mac(&self, period: u64, from: SocketAddr, hello: &ClientHello<'_>, padding: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.address_mac(b"retry", period, from);
        mac.update(padding);
        hello.constant_parts().for_each(|part| mac.update(part));
        mac
    }

    fn address_mac(&self, label: &[u8], period: u64, from: SocketAddr) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("HMAC takes keys of any length");
        mac.update(label);
        mac.update(&period.to_be_bytes());
        match from.ip() {
            IpAddr::V4(ip) => mac.update(&ip.octets()),
            IpAddr::V6(ip) => mac.update(&ip.octets()),
        }
        mac.update(&from.port().to_be_bytes());
        mac
    }
}

/// How much padding the first message had that got this cookie of DTLS 1.3.
pub fn padding_of(cookie: &[u8]) -> Option<u16> {
    let padding = cookie.first_chunk::<PADDING_BYTES>().map(|bytes| u16::from_be_bytes(*bytes));
    padding.filter(|padding| *padding != NO_PADDING)
}

/// Bytes of a cookie of DTLS 1.3 before its HMAC, of which 240 bits are left: dimpl takes 32 bytes.
const PADDING_BYTES: usize = 2;
/// No datagram has room for so much.
const NO_PADDING: u16 = u16::MAX;

/// A cookie is valid for one to two of these.
const PERIOD: Duration = Duration::from_secs(30);

fn period(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos() as u64
}

/// The algorithms of RustCrypto, whose HMAC gives the cookie that was checked while [`believing`] runs.
pub fn provider() -> CryptoProvider {
    CryptoProvider { hmac_provider: &CheckedCookies, ..rust_crypto::default_provider() }
}

/// The same for connections that only ask for a cookie: dimpl computes the public key of each private one that it loads, and
/// these use neither.
pub fn asking_provider() -> CryptoProvider {
    CryptoProvider { key_provider: &NoKey, ..provider() }
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
    fn hmac_sha256(&self, key: &[u8], data: &[u8]) -> Result<[u8; 32], CryptoError> {
        if let Some(cookie) = CHECKED.get() {
            return Ok(cookie);
        }
        let mut out = [0; 32];
        self.hmac(HashAlgorithm::SHA256, key, data, &mut out)?;
        Ok(out)
    }

    fn hmac(&self, hash: HashAlgorithm, key: &[u8], data: &[u8], out: &mut [u8]) -> Result<usize, CryptoError> {
        rust_crypto::default_provider().hmac_provider.hmac(hash, key, data, out)
    }
}

/// A private key that signs nothing.
#[derive(Debug)]
struct NoKey;

impl KeyProvider for NoKey {
    fn load_private_key(&self, _: &[u8]) -> Result<Box<dyn SigningKey>, CryptoError> {
        Ok(Box::new(NoKey))
    }
}

impl SigningKey for NoKey {
    fn sign(&mut self, _: &[u8], _: HashAlgorithm, _: &mut Buf) -> Result<(), CryptoError> {
        Err(CryptoError::InvalidPrivateKey)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn supported_hash_algorithms(&self) -> &[HashAlgorithm] {
        &[HashAlgorithm::SHA256]
    }
}
