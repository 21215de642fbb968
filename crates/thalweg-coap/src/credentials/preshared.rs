//! Pre-shared keys.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::CredentialError;

/// A key that both ends have, and its name.
#[derive(Clone)]
pub struct PresharedKey {
    /// The name by which the client tells which key it has.
    pub identity: Vec<u8>,
    /// The key, wiped when it is dropped.
    pub key: Zeroizing<Vec<u8>>,
}

/// Shows the identity only.
impl fmt::Debug for PresharedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PresharedKey").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// Keys by their identities.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PresharedKeys(Arc<HashMap<Vec<u8>, Zeroizing<Vec<u8>>>>);

/// Shows how many there are.
impl fmt::Debug for PresharedKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PresharedKeys({})", self.0.len())
    }
}

impl FromIterator<PresharedKey> for PresharedKeys {
    fn from_iter<I: IntoIterator<Item = PresharedKey>>(keys: I) -> PresharedKeys {
        PresharedKeys(Arc::new(keys.into_iter().map(|one| (one.identity, one.key)).collect()))
    }
}

impl PresharedKeys {
    /// Reads a file with one key or a list of them, in JSON:
    ///
    /// ```json
    /// [{ "identity": "device-1", "key": "736563726574736563726574" }]
    /// ```
    ///
    /// The key is hexadecimal digits, of 1 to 64 bytes.
    ///
    /// # Errors
    /// When the file cannot be read or understood, or names an identity twice.
    pub fn load(path: &Path) -> Result<PresharedKeys, CredentialError> {
        let text = fs::read_to_string(path).map_err(|error| CredentialError::new(path, error))?;
        PresharedKeys::parse(&Zeroizing::new(text)).map_err(|reason| CredentialError::new(path, reason))
    }

    pub(super) fn parse(text: &str) -> Result<PresharedKeys, String> {
        let entries = match serde_json::from_str(text).map_err(|error| error.to_string())? {
            Value::Array(entries) => entries,
            entry => vec![entry],
        };
        let mut keys = HashMap::new();
        for (number, entry) in entries.into_iter().enumerate() {
            let Value::Object(entry) = entry else { return Err(format!("key {} is no object", number + 1)) };
            let PresharedKey { identity, key } =
                read(entry).map_err(|reason| format!("key {}: {reason}", number + 1))?;
            if keys.insert(identity, key).is_some() {
                return Err(format!("key {}: its identity occurred before", number + 1));
            }
        }
        Ok(PresharedKeys(Arc::new(keys)))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The only key; `None` when there are several or none.
    pub fn single(&self) -> Option<PresharedKey> {
        let (identity, key) = self.0.iter().next().filter(|_| self.0.len() == 1)?;
        Some(PresharedKey { identity: identity.clone(), key: key.clone() })
    }

    /// The key of an identity.
    pub fn find(&self, identity: &[u8]) -> Option<&[u8]> {
        self.0.get(identity).map(|key| key.as_slice())
    }
}

fn read(mut entry: Map<String, Value>) -> Result<PresharedKey, String> {
    for (name, reason) in NOT_BUILT {
        if entry.contains_key(name) {
            return Err(format!("{name} is not supported: {reason}"));
        }
    }
    let mut text = |name: &str| match entry.remove(name) {
        Some(Value::String(text)) => Ok(Zeroizing::new(text)),
        Some(_) => Err(format!("{name} is a text")),
        None => Err(format!("{name} is missing")),
    };
    let identity = text("identity")?.as_bytes().to_vec();
    let digits = text("key")?;
    if let Some(name) = entry.keys().next() {
        return Err(format!("{name} is not known; a key has identity and key"));
    }
    if identity.len() > IDENTITY_MAX {
        return Err(format!("the identity is longer than {IDENTITY_MAX} bytes"));
    }
    let key = bytes_of(&digits).filter(|key| !key.is_empty() && key.len() <= KEY_MAX);
    // The digits are in no message: they are the secret.
    let key = key.ok_or_else(|| format!("the key is 2 to {} hexadecimal digits", 2 * KEY_MAX))?;
    Ok(PresharedKey { identity, key })
}

fn bytes_of(digits: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(digits.len() / 2));
    for pair in digits.as_bytes().chunks(2) {
        let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
        bytes.push(u8::from_str_radix(text, 16).ok()?);
    }
    Some(bytes)
}

/// Longer identities need not be supported (RFC 4279 §5.3).
const IDENTITY_MAX: usize = 128;
/// Longer keys need not be supported (RFC 4279 §5.3).
const KEY_MAX: usize = 64;
/// What the DTLS implementation cannot do.
const NOT_BUILT: [(&str, &str); 2] = [
    ("raw_public_key", "DTLS here has pre-shared keys and certificates; put the key into a self-signed certificate"),
    ("connection_id", "DTLS here finds a session by its address; let clients begin a new one when theirs changes"),
];
