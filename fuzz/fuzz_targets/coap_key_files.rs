//! Files of keys: pre-shared keys and OSCORE contexts in JSON, certificates and private keys in PEM and DER. Whatever lies in them
//! is read or refused, and what was read is read again as the same.
#![no_main]

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use libfuzzer_sys::fuzz_target;
use thalweg_coap::credentials::{OwnCertificate, PresharedKeys, Trust};
use thalweg_coap::oscore::file::KeyringFile;

/// A folder of one input, removed at its end.
struct KeyFolder(PathBuf);

impl KeyFolder {
    fn new() -> KeyFolder {
        let path = env::temp_dir().join(format!("thalweg-fuzz-keys-{}", process::id()));
        fs::create_dir_all(&path).expect("a folder");
        KeyFolder(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).expect("written");
        path
    }
}

impl Drop for KeyFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn check_preshared(path: &Path) {
    let Ok(keys) = PresharedKeys::load(path) else { return };
    assert_eq!(PresharedKeys::load(path).expect("it was read"), keys);
    if let Some(one) = keys.single() {
        assert!((1..=64).contains(&one.key.len()) && one.identity.len() <= 128);
        assert_eq!(keys.find(&one.identity), Some(one.key.as_slice()));
    }
}

fn check_certificates(path: &Path, bytes: &[u8]) {
    if let Ok(own) = OwnCertificate::load(path, path) {
        assert!(OwnCertificate::load(path, path).is_ok_and(|again| again == own));
    }
    let trusts = [Trust::load(path).ok(), Trust::from_der([bytes.to_vec()]).ok()];
    for trust in trusts.into_iter().flatten() {
        let _ = trust.check_client(bytes);
        let _ = trust.check_server(bytes, "server");
    }
}

fn check_contexts(folder: &KeyFolder, bytes: &[u8]) {
    // A context may name its file of state, which must not lie anywhere else.
    let is_harmless = std::str::from_utf8(bytes).is_ok_and(|text| !text.contains("state") && !text.contains('\\'));
    if is_harmless {
        let path = folder.write("contexts.json", bytes);
        if KeyringFile::load(&path).is_ok() {
            assert!(KeyringFile::load(&path).is_ok(), "its state was written and is read");
        }
    }
    let keys = br#"{"master_secret": "0102030405060708090a0b0c0d0e0f10", "sender_id": "01", "recipient_id": "02"}"#;
    let path = folder.write("own.json", keys);
    folder.write("own.json.01-02.state", bytes);
    let _ = KeyringFile::load(&path);
}

fuzz_target!(|bytes: &[u8]| {
    let folder = KeyFolder::new();
    let path = folder.write("keys", bytes);
    check_preshared(&path);
    check_certificates(&path, bytes);
    check_contexts(&folder, bytes);
});
