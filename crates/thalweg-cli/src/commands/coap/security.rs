//! Credentials for DTLS and TLS on the command line, and rules for access.

use std::path::PathBuf;

use clap::Args;
use thalweg_coap::credentials::{CredentialError, Credentials, OwnCertificate, PresharedKeys, Trust};
use thalweg_coap::identity::{AccessRule, AccessRules};
use thalweg_coap::interaction::routes::Routes;

use crate::outcome::Failure;

/// What proves this end to the other, and the other to this one.
#[derive(Args, Debug)]
pub struct CredentialOptions {
    /// Prove identities by the pre-shared keys in the JSON file FILE: identity and key, or a list of them; see docs/coap.md (default: none).
    #[arg(long, value_name = "FILE")]
    pub psk: Option<PathBuf>,

    /// Show the certificate in the PEM file FILE (default: none).
    #[arg(long, value_name = "FILE", requires = "private_key")]
    pub certificate: Option<PathBuf>,

    /// Sign with the private key of the certificate, in the PEM file FILE (default: none).
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub private_key: Option<PathBuf>,

    /// Believe the certificates in the PEM file FILE and those that they signed (default: none).
    #[arg(long, value_name = "FILE")]
    pub trust: Option<PathBuf>,
}

impl CredentialOptions {
    /// The credentials in the files.
    pub fn load(&self) -> Result<Credentials, Failure> {
        let failed = |error: CredentialError| Failure::Usage(error.to_string());
        let keys = self.psk.as_ref().map(|path| PresharedKeys::load(path)).transpose().map_err(failed)?;
        let own = self.certificate.as_ref().zip(self.private_key.as_ref());
        let certificate = own.map(|(chain, key)| OwnCertificate::load(chain, key)).transpose().map_err(failed)?;
        let trust = self.trust.as_ref().map(|path| Trust::load(path)).transpose().map_err(failed)?;
        Ok(Credentials { keys: keys.unwrap_or_default(), certificate, trust })
    }
}

/// Who may do what.
#[derive(Args, Debug)]
pub struct AccessOptions {
    /// Allow METHODS (any, or get,put,…) on PATH and everything below it, or on `proxy` for requests that name another server, to WHO only: any, none, known, psk:IDENTITY, subject:NAME, oscore:HEX, transport:SCHEME or net:ADDRESS/BITS. May be repeated; of several paths the longest decides (default: all to all).
    #[arg(long = "allow", value_name = "PATH METHODS WHO", value_parser = |text: &str| text.parse::<AccessRule>())]
    pub rules: Vec<AccessRule>,
}

impl AccessOptions {
    /// The same routes under the rules.
    pub fn apply(&self, routes: Routes) -> Routes {
        routes.with_access(AccessRules::new(self.rules.iter().cloned()))
    }
}
