//! The key that controllers and agents share.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::LabError;

/// 256 bits from the kernel's random source, in a file of their owner's alone.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentKey([u8; 32]);

/// Proof that a message comes from a holder of a key.
pub(super) type Tag = [u8; TAG_BYTES];
pub(super) const TAG_BYTES: usize = 32;

impl AgentKey {
    /// Makes a new key in a new file that only its owner may read.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub fn make(path: &Path) -> Result<(), LabError> {
        let shown = path.display();
        let key = AgentKey::random()?;
        let text: String = key.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            writeln!(file, "{text}")?;
            file.sync_all()
        };
        write().map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => LabError::Here(format!(
                "{shown} exists; choose another file, or remove it if no agent and no controller uses it any more"
            )),
            ErrorKind::NotFound => LabError::Here(format!("{shown} cannot be written: its folder is missing")),
            _ => LabError::Here(format!("{shown} cannot be written: {error}")),
        })
    }

    /// Reads the key in a file.
    ///
    /// # Errors
    /// The file is missing, others than its owner may read or change it, or it holds no key.
    pub fn load(path: &Path) -> Result<AgentKey, LabError> {
        let shown = path.display();
        let unreadable = |error: std::io::Error| {
            let advice = match error.kind() {
                ErrorKind::NotFound => format!(
                    "; make one with `thalweg lab agent --make-key {shown}` and copy it to all hosts, or name the file with --key"
                ),
                _ => String::new(),
            };
            LabError::Here(format!("the key {shown} cannot be read: {error}{advice}"))
        };
        let file = File::open(path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(LabError::Here(format!(
                "the key {shown} is open to others (mode {mode:03o}): `chmod 600 {shown}`, and make a new one if others may have read it"
            )));
        }
        let mut text = String::new();
        file.take(TEXT_MAX).read_to_string(&mut text).map_err(unreadable)?;
        AgentKey::parse(&text).ok_or_else(|| {
            LabError::Here(format!("{shown} holds no key: 64 hexadecimal digits are needed, as --make-key writes them"))
        })
    }

    fn parse(text: &str) -> Option<AgentKey> {
        let digits = text.trim().as_bytes();
        if digits.len() != 2 * TAG_BYTES {
            return None;
        }
        let mut key = [0; TAG_BYTES];
        for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
        }
        Some(AgentKey(key))
    }

    pub(super) fn random() -> Result<AgentKey, LabError> {
        thalweg_transport::entropy::key().map(AgentKey).map_err(LabError::here)
    }

    /// A key for one purpose of one connection.
    pub(super) fn derive(&self, purpose: &str, parts: &[&[u8]]) -> AgentKey {
        AgentKey(self.tag(purpose, parts))
    }

    /// The tag of `parts`, none of which can be taken for another one's end.
    pub(super) fn tag(&self, purpose: &str, parts: &[&[u8]]) -> Tag {
        self.mac(purpose, parts).finalize().into_bytes().into()
    }

    /// Whether `tag` is that of `parts`; takes as long for every wrong one.
    pub(super) fn verifies(&self, purpose: &str, parts: &[&[u8]], tag: &[u8]) -> bool {
        self.mac(purpose, parts).verify_slice(tag).is_ok()
    }

    fn mac(&self, purpose: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        for part in [purpose.as_bytes()].iter().chain(parts) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for AgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Default file of the key: `thalweg/lab.key` in the folder of the user's settings.
pub fn default_key_file() -> PathBuf {
    let settings = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".config");
    settings.unwrap_or_else(home).join("thalweg/lab.key")
}

/// A file longer than this holds something else.
const TEXT_MAX: u64 = 1024;

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_its_owners_alone_and_is_read_again() {
        let path = std::env::temp_dir().join(format!("thalweg-key-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let error = AgentKey::load(&path).expect_err("missing").to_string();
        assert!(error.contains("--make-key"), "{error}");
        AgentKey::make(&path).expect("made");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        assert_eq!(AgentKey::load(&path).expect("read"), AgentKey::load(&path).expect("read"));
        let error = AgentKey::make(&path).expect_err("it exists").to_string();
        assert!(error.contains("exists; choose another file"), "{error}");
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("changed");
            let error = AgentKey::load(&path).expect_err("open to others").to_string();
            assert!(error.contains("chmod 600"), "{error}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("changed");
        fs::write(&path, "secret\n").expect("written");
        let error = AgentKey::load(&path).expect_err("no key").to_string();
        assert!(error.contains("64 hexadecimal digits"), "{error}");
        fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn two_keys_differ_and_are_not_shown() {
        let (one, other) = (AgentKey::random().expect("random"), AgentKey::random().expect("random"));
        assert_ne!(one, other);
        assert_eq!(format!("{one:?}"), "Key(…)");
    }

    #[test]
    fn a_tag_belongs_to_its_key_its_purpose_and_each_part() {
        let key = AgentKey([7; 32]);
        let tag = key.tag("a", &[b"one", b"two"]);
        assert!(key.verifies("a", &[b"one", b"two"], &tag));
        assert!(!key.verifies("b", &[b"one", b"two"], &tag));
        assert!(!key.verifies("a", &[b"onet", b"wo"], &tag), "the border between parts counts");
        assert!(!key.verifies("a", &[b"one", b"two"], &tag[..31]));
        assert!(!AgentKey([8; 32]).verifies("a", &[b"one", b"two"], &tag));
        assert!(key.derive("a", &[b"one"]) != key.derive("b", &[b"one"]));
    }
}
