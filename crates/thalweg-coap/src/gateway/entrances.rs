//! How clients reach a gateway besides plain datagrams, and what proves them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use thalweg_settings::{SettingsError, SettingsTable, SettingsValue};

use super::GatewayError;
use super::reading::read_address;
use crate::credentials::{CredentialError, Credentials, OwnCertificate, PresharedKeys, Trust};
use crate::dtls::SessionLimits;
use crate::identity::Transport;
use crate::interaction::server::{SecureConfig, ServerConfig};
use crate::interaction::streams::{StreamsConfig, parse_listener};

/// Addresses for DTLS, TCP, TLS and WebSocket, and the files that sessions are proved with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntrancesPlan {
    /// Address of `coaps`; default none. Another one needs a restart.
    pub secure: Option<SocketAddr>,
    /// Addresses for connections; default none. Others need a restart.
    pub listeners: Vec<(Transport, SocketAddr)>,
    /// The files, which are read again with that of the gateway.
    pub files: CredentialFiles,
}

/// Files of credentials, relative to that of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialFiles {
    /// Pre-shared keys of the clients.
    pub keys: Option<PathBuf>,
    /// The certificate and its private key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Certificates that are believed.
    pub trust: Option<PathBuf>,
}

impl CredentialFiles {
    /// Makes the names relative to `directory`.
    pub(super) fn lie_in(&mut self, directory: &Path) {
        let pair = self.certificate.iter_mut().flat_map(|(certificate, key)| [certificate, key]);
        let files = self.keys.iter_mut().chain(pair).chain(self.trust.iter_mut());
        files.for_each(|file| *file = directory.join(&*file));
    }

    /// Reads the files.
    pub(super) fn load(&self) -> Result<Credentials, CredentialError> {
        let keys = self.keys.as_ref().map(|path| PresharedKeys::load(path)).transpose()?;
        let certificate = self.certificate.as_ref().map(|(own, key)| OwnCertificate::load(own, key)).transpose()?;
        let trust = self.trust.as_ref().map(|path| Trust::load(path)).transpose()?;
        Ok(Credentials { keys: keys.unwrap_or_default(), certificate, trust })
    }
}

impl EntrancesPlan {
    /// Reads `[dtls]`, `server.listen` and `[credentials]`.
    pub(super) fn read(root: &SettingsTable<'_>, listen: Option<SettingsValue<'_>>) -> Result<Self, SettingsError> {
        let mut plan = EntrancesPlan::default();
        if let Some(field) = root.get("credentials") {
            plan.files = read_files(&field)?;
        }
        if let Some(field) = root.get("dtls") {
            let table = field.table((&["bind"], &[]))?;
            plan.secure = Some(table.or("bind", SocketAddr::from(([127, 0, 0, 1], 5684)), read_address)?);
            if plan.files.keys.is_none() && plan.files.certificate.is_none() {
                return Err(field.error("needs psk, or certificate and private_key, in [credentials]"));
            }
        }
        if let Some(field) = listen {
            plan.listeners = field.list(LISTENERS_MAX, read_listener)?;
            let has_tls = plan.listeners.iter().any(|(transport, _)| transport.is_secure());
            if has_tls && plan.files.certificate.is_none() {
                return Err(field.error("TLS needs certificate and private_key in [credentials]; it has no keys (psk)"));
            }
        }
        if plan.secure.is_none()
            && !plan.listeners.iter().any(|(transport, _)| transport.is_secure())
            && let Some(field) = root.get("credentials")
        {
            return Err(field.error("nothing uses them: write [dtls], or listen for coaps+tcp or coaps+ws"));
        }
        Ok(plan)
    }

    /// Adds the entrances to a server.
    pub(super) fn add_to(&self, config: &mut ServerConfig) -> Result<(), GatewayError> {
        let credentials = self.files.load().map_err(|error| GatewayError(error.to_string()))?;
        if !self.listeners.is_empty() {
            let streams = StreamsConfig::new(credentials.clone());
            config.streams = Some(StreamsConfig { listeners: self.listeners.clone(), ..streams });
        }
        if let Some(address) = self.secure {
            config.secure = Some(SecureConfig { address, credentials, limits: SessionLimits::default() });
        }
        Ok(())
    }
}

fn read_files(field: &SettingsValue<'_>) -> Result<CredentialFiles, SettingsError> {
    let table = field.table((&["psk", "certificate", "private_key", "trust"], &[]))?;
    let path = |key: &'static str| table.maybe(key, |one| one.text().map(PathBuf::from));
    let certificate = match (path("certificate")?, path("private_key")?) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(field.error("certificate and private_key are needed together")),
    };
    Ok(CredentialFiles { keys: path("psk")?, certificate, trust: path("trust")? })
}

/// `SCHEME://ADDRESS:PORT` of a transport with connections.
fn read_listener(field: &SettingsValue<'_>) -> Result<(Transport, SocketAddr), SettingsError> {
    parse_listener(field.text()?).map_err(|error| field.error(error))
}

/// Listeners of one gateway; two for each transport and family, and some to spare.
const LISTENERS_MAX: usize = 32;
