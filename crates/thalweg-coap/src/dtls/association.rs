//! One DTLS connection, by dimpl, in the time of this crate.

use std::sync::{Arc, Mutex, PoisonError};

use dimpl::{Config, Dtls, DtlsCertificate, Output, PskResolver};
use thalweg_base::time::Instant;

use super::hello::ClientHello;
use super::{DtlsError, cookie};
use crate::credentials::{OwnCertificate, PresharedKeys};

/// Relates the time of protocols to the clock that dimpl reckons with.
#[derive(Clone, Copy, Debug)]
pub struct ClockOrigin(std::time::Instant);

impl ClockOrigin {
    /// Protocol time is `now` at this moment.
    pub fn at(now: Instant) -> ClockOrigin {
        let moment = std::time::Instant::now();
        // A protocol that began before the host did begins with it.
        let zero = moment.checked_sub(std::time::Duration::from_nanos(now.as_nanos()));
        ClockOrigin(zero.unwrap_or(moment))
    }

    fn moment(self, now: Instant) -> std::time::Instant {
        self.0 + std::time::Duration::from_nanos(now.as_nanos())
    }

    fn instant(self, moment: std::time::Instant) -> Instant {
        Instant::ZERO + moment.saturating_duration_since(self.0)
    }
}

/// One end of a connection.
pub struct DtlsAssociation {
    dtls: Dtls,
    origin: ClockOrigin,
    /// The client's random bytes in the ClientHello that the server answered.
    began_with: Option<[u8; 32]>,
    is_preshared: bool,
}

/// What a connection wants next.
pub enum DtlsStep<'a> {
    /// Send this datagram.
    Send(&'a [u8]),
    /// The peer said this.
    Plain(&'a [u8]),
    /// The peer's certificate, before [`DtlsStep::Connected`].
    Certificate(&'a [u8]),
    /// The handshake is complete.
    Connected,
    /// The peer ended the connection.
    Closed,
    /// Go on: this does not concern CoAP.
    Nothing,
    /// Nothing before this time.
    Idle(Instant),
}

impl DtlsAssociation {
    /// The server's end for the client that sent `datagram`, whose cookie was checked.
    ///
    /// # Errors
    /// When the ClientHello cannot be agreed with.
    pub fn accept(
        side: &ServerSide,
        origin: ClockOrigin,
        now: Instant,
        hello: &ClientHello<'_>,
        datagram: &[u8],
    ) -> Result<DtlsAssociation, DtlsError> {
        let (dtls, began_with) = (side.open(origin.moment(now)), hello.random.try_into().ok());
        let association = DtlsAssociation { dtls, origin, began_with, is_preshared: side.opens_by_key() };
        let mut first = Vec::with_capacity(datagram.len());
        hello.write_without_cookie(&mut first);
        association.begin(now, hello.cookie, &first, datagram)
    }

    /// The same for a client of DTLS 1.3, whose first datagram was `first`.
    ///
    /// # Errors
    /// When the ClientHello cannot be agreed with.
    pub fn accept13(
        side: &ServerSide,
        origin: ClockOrigin,
        now: Instant,
        hello: &ClientHello<'_>,
        (first, datagram): (&[u8], &[u8]),
    ) -> Result<DtlsAssociation, DtlsError> {
        let (dtls, began_with) = (side.open13(origin.moment(now))?, hello.random.try_into().ok());
        let association = DtlsAssociation { dtls, origin, began_with, is_preshared: false };
        association.begin(now, hello.retry_cookie.unwrap_or_default(), first, datagram)
    }

    /// Takes the datagram that a client sent first and the one with the cookie that it was asked for.
    fn begin(
        mut self,
        now: Instant,
        cookie: &[u8],
        first: &[u8],
        datagram: &[u8],
    ) -> Result<DtlsAssociation, DtlsError> {
        let cookie: [u8; 32] = cookie.try_into().map_err(|_| DtlsError("it has no cookie".to_owned()))?;
        cookie::believing(cookie, || {
            self.handle(now, first)?;
            let mut unsent = [0; RECORD_MAX];
            // The client has it: its cookie came back.
            while !matches!(self.poll(&mut unsent), DtlsStep::Idle(_)) {}
            self.handle(now, datagram)
        })?;
        Ok(self)
    }

    /// The datagram that asks the client of DTLS 1.3 that sent `first` to send it again with `cookie` (HelloRetryRequest), in
    /// `buffer`; nothing is kept.
    ///
    /// # Errors
    /// When the ClientHello cannot be agreed with.
    pub fn ask_again<'a>(
        side: &ServerSide,
        origin: ClockOrigin,
        now: Instant,
        first: &[u8],
        cookie: [u8; 32],
        buffer: &'a mut [u8; RECORD_MAX],
    ) -> Result<&'a [u8], DtlsError> {
        let dtls = side.open_asking(origin.moment(now))?;
        let mut association = DtlsAssociation { dtls, origin, began_with: None, is_preshared: false };
        cookie::believing(cookie, || association.handle(now, first))?;
        match association.poll(buffer) {
            DtlsStep::Send(bytes) => Ok(bytes),
            _ => Err(DtlsError("it is no ClientHello".to_owned())),
        }
    }

    /// The client's end; its first datagram waits to be sent.
    ///
    /// # Errors
    /// When dimpl cannot begin.
    pub fn connect(side: &ClientSide, origin: ClockOrigin, now: Instant) -> Result<DtlsAssociation, DtlsError> {
        let moment = origin.moment(now);
        let mut dtls = match &side.certificate {
            _ if side.is_preshared => Dtls::new_12_psk(Arc::clone(&side.config), moment),
            Some(certificate) => Dtls::new_auto(Arc::clone(&side.config), certificate.clone(), moment),
            None => return Err(DtlsError("the client has neither a key nor a certificate".to_owned())),
        };
        dtls.set_active(true);
        let mut association = DtlsAssociation { dtls, origin, began_with: None, is_preshared: side.is_preshared };
        association.handle_timeout(now)?;
        Ok(association)
    }

    /// Whether it began with this ClientHello, which then is a repetition.
    pub fn is_of(&self, hello: &ClientHello<'_>) -> bool {
        self.began_with.is_some_and(|random| random == *hello.random)
    }

    /// Whether the ends prove themselves by a pre-shared key.
    pub fn is_preshared(&self) -> bool {
        self.is_preshared
    }

    /// Takes a datagram of the peer; then [`DtlsAssociation::poll`] until it is idle.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn handle(&mut self, now: Instant, datagram: &[u8]) -> Result<(), DtlsError> {
        self.dtls.handle_timeout(self.origin.moment(now))?;
        Ok(self.dtls.handle_packet(datagram)?)
    }

    /// Does what is due; then [`DtlsAssociation::poll`] until it is idle.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsError> {
        Ok(self.dtls.handle_timeout(self.origin.moment(now))?)
    }

    /// Protects `plain` for the peer; then [`DtlsAssociation::poll`] until it is idle.
    ///
    /// # Errors
    /// When the connection is over, or has not begun.
    pub fn send(&mut self, plain: &[u8]) -> Result<(), DtlsError> {
        match self.dtls.send_application_data(plain)? {
            0 if !plain.is_empty() => Err(DtlsError("the handshake is not complete".to_owned())),
            _ => Ok(()),
        }
    }

    /// Says goodbye to the peer; then [`DtlsAssociation::poll`] until it is idle.
    pub fn close(&mut self) {
        // Nothing is lost when it cannot be said.
        let _ = self.dtls.close();
    }

    /// What the connection wants next; `buffer` has room for [`RECORD_MAX`] bytes.
    pub fn poll<'a>(&mut self, buffer: &'a mut [u8; RECORD_MAX]) -> DtlsStep<'a> {
        match self.dtls.poll_output(buffer) {
            Output::Packet(bytes) => DtlsStep::Send(bytes),
            Output::ApplicationData(bytes) => DtlsStep::Plain(bytes),
            Output::PeerCert(der) => DtlsStep::Certificate(der),
            Output::Connected => DtlsStep::Connected,
            Output::CloseNotify => DtlsStep::Closed,
            Output::Timeout(moment) => DtlsStep::Idle(self.origin.instant(moment)),
            // Keys for SRTP; no record is longer than the buffer.
            _ => DtlsStep::Nothing,
        }
    }

    /// Whether DTLS 1.3 was agreed on.
    pub fn is_dtls13(&self) -> bool {
        self.dtls.protocol_version() == Some(dimpl::ProtocolVersion::DTLS1_3)
    }
}

/// The longest plaintext of a record (RFC 6347 §4.1), with room for its header and protection.
pub const RECORD_MAX: usize = (1 << 14) + 256;

/// What the connections of a server have in common.
pub struct ServerSide {
    preshared: Option<Arc<Config>>,
    certified: Option<(Arc<Config>, DtlsCertificate)>,
    /// For connections of DTLS 1.3 that only ask for a cookie.
    asking: Option<Arc<Config>>,
    /// One for all handshakes, also those that began with other keys.
    resolver: Arc<Resolver>,
    keys: PresharedKeys,
    uses_key: bool,
}

impl ServerSide {
    /// Connections by keys, by a certificate, or both; `asks_clients` for certificates of theirs.
    pub fn new(
        keys: &PresharedKeys,
        certificate: Option<&OwnCertificate>,
        asks_clients: bool,
        handshake_timeout: std::time::Duration,
    ) -> Result<ServerSide, DtlsError> {
        let resolver = Arc::new(Resolver::new(keys));
        ServerSide::with_resolver(resolver, keys, certificate, asks_clients, handshake_timeout)
    }

    /// The same with other credentials; handshakes under way look up their keys among these.
    pub fn renewed(
        &self,
        keys: &PresharedKeys,
        certificate: Option<&OwnCertificate>,
        asks_clients: bool,
        handshake_timeout: std::time::Duration,
    ) -> Result<ServerSide, DtlsError> {
        let resolver = Arc::clone(&self.resolver);
        let side = ServerSide::with_resolver(resolver, keys, certificate, asks_clients, handshake_timeout)?;
        side.resolver.set_keys(keys);
        Ok(side)
    }

    fn with_resolver(
        resolver: Arc<Resolver>,
        keys: &PresharedKeys,
        certificate: Option<&OwnCertificate>,
        asks_clients: bool,
        handshake_timeout: std::time::Duration,
    ) -> Result<ServerSide, DtlsError> {
        let shared: Arc<dyn PskResolver> = Arc::clone(&resolver) as Arc<dyn PskResolver>;
        let builder =
            || Config::builder().with_crypto_provider(cookie::provider()).handshake_timeout(handshake_timeout);
        let preshared = (!keys.is_empty()).then(|| {
            let builder = builder().with_psk_server(None, shared).dtls13_cipher_suites(&[]);
            builder.dtls12_cipher_suites(&[dimpl::crypto::Dtls12CipherSuite::PSK_AES128_CCM_8]).build()
        });
        let certified = certificate.map(|own| {
            let config = builder().require_client_certificate(asks_clients).build()?;
            Ok::<_, DtlsError>((Arc::new(config), dtls_certificate(own)?))
        });
        let asking = certificate.map(|_| builder().with_crypto_provider(cookie::asking_provider()).build());
        let asking = asking.transpose()?.map(Arc::new);
        let preshared = preshared.transpose()?.map(Arc::new);
        let certified = certified.transpose()?;
        if preshared.is_none() && certified.is_none() {
            return Err(DtlsError("a server of DTLS needs pre-shared keys or a certificate".to_owned()));
        }
        Ok(ServerSide { preshared, certified, asking, resolver, keys: keys.clone(), uses_key: false })
    }

    /// Whether a ClientHello can lead to a connection; chooses the key or the certificate for the next one.
    pub fn choose(&mut self, hello: &ClientHello<'_>) -> bool {
        // The first of the client's suites that this server has: a client with keys and certificates has an order.
        let chosen = hello.offered().find_map(|suite| match suite {
            PSK_AES128_CCM_8 => self.preshared.as_ref().map(|_| true),
            suite => self.certified.as_ref().filter(|_| ECDHE_ECDSA.contains(&suite)).map(|_| false),
        });
        self.uses_key = chosen.unwrap_or_default();
        chosen.is_some()
    }

    /// Whether connections of DTLS 1.3 are possible: those with certificates.
    pub fn has_dtls13(&self) -> bool {
        self.certified.is_some()
    }

    /// The key of an identity.
    pub fn key(&self, identity: &[u8]) -> Option<&[u8]> {
        self.keys.find(identity)
    }

    /// The identity whose key was looked up since the last call: while [`DtlsAssociation::handle`] took a datagram of its client.
    pub fn take_identity(&self) -> Option<Vec<u8>> {
        self.resolver.last.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the next connection is one by a key.
    fn opens_by_key(&self) -> bool {
        self.preshared.is_some() && (self.uses_key || self.certified.is_none())
    }

    fn open(&self, moment: std::time::Instant) -> Dtls {
        match (&self.preshared, &self.certified) {
            (Some(config), _) if self.uses_key => Dtls::new_12_psk(Arc::clone(config), moment),
            (_, Some((config, certificate))) => Dtls::new_12(Arc::clone(config), certificate.clone(), moment),
            (Some(config), None) => Dtls::new_12_psk(Arc::clone(config), moment),
            (None, None) => unreachable!("one of them was demanded"),
        }
    }

    fn open13(&self, moment: std::time::Instant) -> Result<Dtls, DtlsError> {
        let (config, certificate) =
            self.certified.as_ref().ok_or_else(|| DtlsError("DTLS 1.3 needs a certificate".to_owned()))?;
        Ok(Dtls::new_13(Arc::clone(config), certificate.clone(), moment))
    }

    fn open_asking(&self, moment: std::time::Instant) -> Result<Dtls, DtlsError> {
        let config = self.asking.as_ref().ok_or_else(|| DtlsError("DTLS 1.3 needs a certificate".to_owned()))?;
        let certificate = DtlsCertificate { certificate: Vec::new(), private_key: Vec::new() };
        Ok(Dtls::new_13(Arc::clone(config), certificate, moment))
    }
}

/// What a client's connections have in common.
pub struct ClientSide {
    config: Arc<Config>,
    certificate: Option<DtlsCertificate>,
    is_preshared: bool,
}

impl ClientSide {
    /// Connections by the only key of `keys`, or else by certificates.
    pub fn new(
        keys: &PresharedKeys,
        certificate: Option<&OwnCertificate>,
        handshake_timeout: std::time::Duration,
    ) -> Result<ClientSide, DtlsError> {
        let builder = Config::builder().with_crypto_provider(cookie::provider()).handshake_timeout(handshake_timeout);
        if let Some(one) = keys.single() {
            let resolver = Arc::new(Resolver::new(keys));
            let builder = builder.with_psk_client(one.identity, resolver).dtls13_cipher_suites(&[]);
            let builder = builder.dtls12_cipher_suites(&[dimpl::crypto::Dtls12CipherSuite::PSK_AES128_CCM_8]);
            return Ok(ClientSide { config: Arc::new(builder.build()?), certificate: None, is_preshared: true });
        }
        if !keys.is_empty() {
            return Err(DtlsError("a client needs exactly one pre-shared key".to_owned()));
        }
        let own = certificate.ok_or_else(|| DtlsError("a client without a key needs a certificate".to_owned()))?;
        let certificate = Some(dtls_certificate(own)?);
        Ok(ClientSide { config: Arc::new(builder.build()?), certificate, is_preshared: false })
    }
}

fn dtls_certificate(own: &OwnCertificate) -> Result<DtlsCertificate, DtlsError> {
    let first = own.chain().first().ok_or_else(|| DtlsError("the chain of certificates is empty".to_owned()))?;
    let private_key = own.key().secret_der().to_vec();
    let provider = dimpl::crypto::rust_crypto::default_provider();
    // Found out now, and not by the first client.
    provider.key_provider.load_private_key(&private_key).map_err(|error| {
        DtlsError(format!("the private key cannot be used ({error}); DTLS needs an ECDSA key on P-256 or P-384"))
    })?;
    Ok(DtlsCertificate { certificate: first.to_vec(), private_key })
}

/// Looks keys up, and remembers for which identity: dimpl tells it to nobody else.
struct Resolver {
    keys: Mutex<PresharedKeys>,
    last: Mutex<Option<Vec<u8>>>,
}

impl Resolver {
    fn new(keys: &PresharedKeys) -> Resolver {
        Resolver { keys: Mutex::new(keys.clone()), last: Mutex::default() }
    }

    fn set_keys(&self, keys: &PresharedKeys) {
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = keys.clone();
    }
}

impl PskResolver for Resolver {
    fn resolve(&self, identity: &[u8]) -> Option<Vec<u8>> {
        let key = self.keys.lock().unwrap_or_else(PoisonError::into_inner).find(identity)?.to_vec();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(identity.to_vec());
        Some(key)
    }
}

/// TLS_PSK_WITH_AES_128_CCM_8, which every CoAP implementation with DTLS and keys has (RFC 7252 §9.1.3.1).
const PSK_AES128_CCM_8: u16 = 0xc0a8;
/// TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, …_AES_256_GCM_SHA384 and …_CHACHA20_POLY1305_SHA256, which dimpl has.
const ECDHE_ECDSA: [u16; 3] = [0xc02b, 0xc02c, 0xcca9];
