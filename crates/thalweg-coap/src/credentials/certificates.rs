//! Certificates: the own one, and those that are believed.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};

use super::CredentialError;

/// A certificate with its private key. DTLS needs an ECDSA key on P-256 or P-384 and sends the first certificate of the chain.
#[derive(Clone)]
pub struct OwnCertificate(Arc<Parts>);

struct Parts {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Shows how long the chain is.
impl fmt::Debug for OwnCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OwnCertificate(chain of {})", self.0.chain.len())
    }
}

impl OwnCertificate {
    /// Reads a chain, the own certificate first, and its key, both in PEM.
    ///
    /// # Errors
    /// When a file cannot be read or has no such object in it.
    pub fn load(certificate: &Path, key: &Path) -> Result<OwnCertificate, CredentialError> {
        let chain = read_certificates(certificate)?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| CredentialError::new(key, error))?;
        Ok(OwnCertificate(Arc::new(Parts { chain, key: private })))
    }

    /// A certificate and its private key (PKCS #8), both in DER.
    pub fn from_der(certificate: Vec<u8>, key: Vec<u8>) -> OwnCertificate {
        let key = PrivateKeyDer::Pkcs8(key.into());
        OwnCertificate(Arc::new(Parts { chain: vec![certificate.into()], key }))
    }

    pub(crate) fn chain(&self) -> &[CertificateDer<'static>] {
        &self.0.chain
    }

    pub(crate) fn key(&self) -> &PrivateKeyDer<'static> {
        &self.0.key
    }
}

/// The same chain with the same key.
impl PartialEq for OwnCertificate {
    fn eq(&self, other: &OwnCertificate) -> bool {
        self.0.chain == other.0.chain && self.0.key == other.0.key
    }
}

/// Certificates that are believed: those that are listed, and those that a listed authority signed.
#[derive(Clone)]
pub struct Trust {
    listed: Arc<Vec<CertificateDer<'static>>>,
    clients: Arc<dyn ClientCertVerifier>,
    servers: Arc<WebPkiServerVerifier>,
}

/// The same list.
impl PartialEq for Trust {
    fn eq(&self, other: &Trust) -> bool {
        self.listed == other.listed
    }
}

/// Shows how many there are.
impl fmt::Debug for Trust {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Trust({})", self.listed.len())
    }
}

/// Why a certificate is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untrusted(String);

impl fmt::Display for Untrusted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the certificate is not believed: {}", self.0)
    }
}

impl std::error::Error for Untrusted {}

impl Trust {
    /// Reads certificates in PEM.
    ///
    /// # Errors
    /// When the file cannot be read, or has no certificate in it.
    pub fn load(path: &Path) -> Result<Trust, CredentialError> {
        Trust::new(read_certificates(path)?).map_err(|reason| CredentialError::new(path, reason))
    }

    /// Believes these certificates in DER.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn from_der(certificates: impl IntoIterator<Item = Vec<u8>>) -> Result<Trust, Untrusted> {
        Trust::new(certificates.into_iter().map(CertificateDer::from).collect()).map_err(Untrusted)
    }

    fn new(listed: Vec<CertificateDer<'static>>) -> Result<Trust, String> {
        let mut roots = RootCertStore::empty();
        for certificate in &listed {
            roots.add(certificate.clone()).map_err(|error| error.to_string())?;
        }
        let (roots, provider) = (Arc::new(roots), provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider)).build();
        let servers = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        let clients = clients.map_err(|error| error.to_string())?;
        let servers = servers.map_err(|error| error.to_string())?;
        Ok(Trust { listed: Arc::new(listed), clients, servers })
    }

    /// Checks the certificate of a client.
    ///
    /// # Errors
    /// The reason why it is not believed.
    pub fn check_client(&self, der: &[u8]) -> Result<(), Untrusted> {
        let checked = self.verify_client(&CertificateDer::from(der), &[], UnixTime::now());
        checked.map(|_| ()).map_err(|error| Untrusted(error.to_string()))
    }

    /// Checks the certificate of the server that the client calls `host`.
    ///
    /// # Errors
    /// The reason why it is not believed.
    pub fn check_server(&self, der: &[u8], host: &str) -> Result<(), Untrusted> {
        let certificate = CertificateDer::from(der);
        if self.is_listed(&certificate) {
            return Ok(());
        }
        let name = ServerName::try_from(host).map_err(|error| Untrusted(error.to_string()))?;
        let checked = self.verify_server(&certificate, &[], &name, &[], UnixTime::now());
        checked.map(|_| ()).map_err(|error| Untrusted(error.to_string()))
    }

    /// Believes the certificate of a client if it is listed itself, or a listed authority signed it.
    pub(crate) fn verify_client(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        match self.is_listed(certificate) {
            true => Ok(ClientCertVerified::assertion()),
            false => self.clients.verify_client_cert(certificate, intermediates, now),
        }
    }

    /// The same for that of a server with a name.
    pub(crate) fn verify_server(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.is_listed(certificate) {
            true => Ok(ServerCertVerified::assertion()),
            false => self.servers.verify_server_cert(certificate, intermediates, name, ocsp, now),
        }
    }

    /// Whether exactly this certificate is listed: then its key is all it has to prove.
    fn is_listed(&self, certificate: &CertificateDer<'_>) -> bool {
        self.listed.iter().any(|listed| listed.as_ref() == certificate.as_ref())
    }

    /// The verifier of clients; signatures of servers are verified the same way.
    pub(crate) fn clients(&self) -> &dyn ClientCertVerifier {
        &*self.clients
    }
}

/// The algorithms of TLS.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    let failed = |error: &dyn fmt::Display| CredentialError::new(path, error);
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?.collect();
    let found = found.map_err(|error| failed(&error))?;
    if found.is_empty() {
        return Err(failed(&"it has no certificate in it (PEM, BEGIN CERTIFICATE)"));
    }
    Ok(found)
}
