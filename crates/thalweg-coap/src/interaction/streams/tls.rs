//! TLS of both ends.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    ClientConfig, Connection, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
};

use crate::credentials::{Credentials, Trust, provider};
use crate::identity::{SessionIdentity, Transport, read_subject};

/// The settings of a server's connections.
#[derive(Clone)]
pub(in crate::interaction) struct TlsServer(Arc<ServerConfig>);

impl TlsServer {
    /// Connections with the certificate in `credentials`, to clients with certificates if it has some to believe. Clients of
    /// `coaps+tcp` that offer protocols have to offer `coap`; those that offer none are let in at every port, since the standard
    /// demands the offer of clients and has servers refuse nobody (RFC 8323 §8.2).
    pub(in crate::interaction) fn new(credentials: &Credentials, transport: Transport) -> io::Result<TlsServer> {
        let own = credentials.certificate.as_ref().ok_or_else(|| io::Error::other(NO_CERTIFICATE))?;
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let builder = builder.map_err(io::Error::other)?;
        let builder = match &credentials.trust {
            Some(trust) => builder.with_client_cert_verifier(Arc::new(Listed(trust.clone()))),
            None => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(own.chain().to_vec(), own.key().clone_key());
        let mut config = config.map_err(io::Error::other)?;
        config.alpn_protocols = protocols(transport);
        Ok(TlsServer(Arc::new(config)))
    }

    pub(super) fn accept(&self) -> io::Result<TlsLayer> {
        let connection = rustls::ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)?;
        Ok(TlsLayer::new(connection.into(), Agreement::Optional))
    }
}

/// Whether the other end has to agree on the protocol `coap` (ALPN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agreement {
    Demanded,
    Optional,
}

/// TLS of one connection, in memory.
pub(super) struct TlsLayer {
    connection: Box<Connection>,
    agreement: Agreement,
}

impl TlsLayer {
    fn new(mut connection: Connection, agreement: Agreement) -> TlsLayer {
        // What is sealed is taken at once, and its length is bounded by whoever seals it.
        connection.set_buffer_limit(None);
        TlsLayer { connection: Box::new(connection), agreement }
    }

    /// The client's end of a connection to a port of the server that it calls `host`.
    pub(super) fn connect(
        credentials: &Credentials,
        host: &str,
        transport: Transport,
        port: u16,
    ) -> io::Result<TlsLayer> {
        let trust = credentials.trust.clone().ok_or_else(|| io::Error::other(NO_TRUST))?;
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let builder = builder.map_err(io::Error::other)?.dangerous();
        let builder = builder.with_custom_certificate_verifier(Arc::new(Listed(trust)));
        let config = match &credentials.certificate {
            Some(own) => builder.with_client_auth_cert(own.chain().to_vec(), own.key().clone_key()),
            None => Ok(builder.with_no_client_auth()),
        };
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let mut config = config.map_err(io::Error::other)?;
        config.alpn_protocols = protocols(transport);
        // At the port that is registered for it, the protocol is CoAP without a word (RFC 8323 §8.2).
        let is_implied = config.alpn_protocols.is_empty() || port == transport.default_port();
        let agreement = if is_implied { Agreement::Optional } else { Agreement::Demanded };
        let connection = rustls::ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        Ok(TlsLayer::new(connection.into(), agreement))
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// What the other end proved.
    pub(super) fn identity(&self) -> Option<SessionIdentity> {
        let subject = read_subject(self.connection.peer_certificates()?.first()?)?;
        Some(SessionIdentity::Certificate { subject })
    }

    /// Opens what arrived, and appends it to `plain`.
    pub(super) fn open(&mut self, mut sealed: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        while !sealed.is_empty() {
            self.connection.read_tls(&mut sealed)?;
            let state = self.connection.process_new_packets().map_err(io::Error::other)?;
            let start = plain.len();
            plain.resize(start + state.plaintext_bytes_to_read(), 0);
            self.connection.reader().read_exact(&mut plain[start..])?;
            if state.peer_has_closed() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.check_agreement()?;
        }
        Ok(())
    }

    fn check_agreement(&self) -> io::Result<()> {
        let is_open = self.agreement == Agreement::Optional || self.is_handshaking();
        let is_agreed = self.connection.alpn_protocol() == Some(COAP);
        if is_open || is_agreed { Ok(()) } else { Err(io::Error::other(NOT_AGREED)) }
    }

    /// Seals `plain`; [`TlsLayer::take`] has the outcome.
    pub(super) fn seal(&mut self, plain: &[u8]) -> io::Result<()> {
        self.connection.writer().write_all(plain)
    }

    /// Appends what is to be sent.
    pub(super) fn take(&mut self, sealed: &mut Vec<u8>) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(sealed)?;
        }
        Ok(())
    }

    /// Says goodbye.
    pub(super) fn close(&mut self) {
        self.connection.send_close_notify();
    }
}

/// What the ends agree on: `coap` below CoAP; nothing below WebSocket, which is HTTP and finds the same out by itself.
fn protocols(transport: Transport) -> Vec<Vec<u8>> {
    if transport == Transport::Tls { vec![COAP.to_vec()] } else { Vec::new() }
}

/// Believes certificates that are listed themselves, and those that a listed authority signed.
#[derive(Debug)]
struct Listed(Trust);

impl ClientCertVerifier for Listed {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.clients().root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.0.verify_client(certificate, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.clients().verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.clients().verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clients().supported_verify_schemes()
    }
}

impl ServerCertVerifier for Listed {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0.verify_server(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.clients().verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.clients().verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clients().supported_verify_schemes()
    }
}

/// The protocol's identifier (RFC 8323 §11.7).
const COAP: &[u8] = b"coap";
const NOT_AGREED: &str = "the server does not agree on the protocol coap by ALPN, as it has to at any port but 5684";
const NO_CERTIFICATE: &str = "TLS needs a certificate; pre-shared keys are for coaps over UDP alone";
const NO_TRUST: &str = "TLS needs certificates to believe; pre-shared keys are for coaps over UDP alone";
