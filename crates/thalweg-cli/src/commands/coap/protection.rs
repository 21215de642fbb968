//! Keys for OSCORE on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use thalweg_coap::endpoint::Config;
use thalweg_coap::identity::Transport;
use thalweg_coap::interaction::client::Client;
use thalweg_coap::interaction::requester::Requester;
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::message::RequestBuf;
use thalweg_coap::oscore::{Keyring, file};

use super::security::CredentialOptions;
use super::target::{TargetUri, failure};
use crate::outcome::Failure;

/// With which keys a client asks.
#[derive(Args, Debug)]
pub struct ClientProtection {
    /// Protect requests end to end by OSCORE (RFC 8613) with the keys in the JSON file FILE: master_secret, sender_id, recipient_id and more, see docs/coap.md (default: no protection).
    #[arg(long, value_name = "FILE")]
    pub oscore: Option<PathBuf>,

    #[command(flatten)]
    /// The credentials for coaps.
    pub credentials: CredentialOptions,
}

impl ClientProtection {
    /// A client for the server of `target` at `server`, connected within `time`; it protects its requests if the options say so.
    pub fn client(&self, target: &TargetUri, server: SocketAddr, time: Duration) -> Result<Requester, Failure> {
        let credentials = self.credentials.load()?;
        if target.transport.is_secure() && credentials.keys.is_empty() && credentials.trust.is_none() {
            let said = format!("{} needs --trust, or --psk for coaps; coap:// has --oscore", target.transport);
            return Err(Failure::Usage(said));
        }
        let opened = Requester::open(target.transport, server, target.host(), &credentials, time);
        let mut client = opened.map_err(|error| failure(&error))?;
        if let Some(path) = &self.oscore {
            let context = file::load_context(path).map_err(|error| Failure::Usage(error.to_string()))?;
            if !client.protect(context) {
                let said = format!("OSCORE is not supported over {}; use coap or coaps", target.transport);
                return Err(Failure::Usage(said));
            }
        }
        Ok(client)
    }

    /// A client for all servers of a group, over plain UDP.
    pub fn group_client(&self, target: &TargetUri, group: SocketAddr) -> Result<Client, Failure> {
        if target.transport != Transport::Udp || self.oscore.is_some() {
            return Err(Failure::Usage("a group is asked by coap:// without protection; name one server".to_owned()));
        }
        Client::open(group, Config::default()).map_err(|error| failure(&error))
    }
}

/// The keys for protected requests of a server, and the paths that require protection.
#[derive(Args, Debug)]
pub struct ServerProtection {
    /// Also answer requests that are protected by OSCORE (RFC 8613) with the keys in the JSON file FILE, one object or a list with one for each client; see docs/coap.md (default: refuse them).
    #[arg(long, value_name = "FILE")]
    pub oscore: Option<PathBuf>,

    /// Answer unprotected requests for PATH and everything below it with 4.01; / for all. May be repeated (default: answer them).
    #[arg(long = "protected", value_name = "PATH", requires = "oscore", value_parser = uri_path)]
    pub paths: Vec<String>,
}

/// A path as a URI has it.
fn uri_path(text: &str) -> Result<String, String> {
    RequestBuf::get(text).fault().map_or_else(|| Ok(text.to_owned()), |why| Err(why.to_owned()))
}

impl ServerProtection {
    /// The same routes, with those that only protected requests reach.
    pub fn apply(&self, routes: Routes) -> Routes {
        self.paths.iter().fold(routes, |routes, path| routes.protect(path))
    }

    /// The keys of the clients.
    pub fn keyring(&self) -> Result<Option<Arc<Keyring>>, Failure> {
        let load = |path: &PathBuf| file::load_keyring(path).map_err(|error| Failure::Usage(error.to_string()));
        self.oscore.as_ref().map(load).transpose().map(|keyring| keyring.map(Arc::new))
    }
}
