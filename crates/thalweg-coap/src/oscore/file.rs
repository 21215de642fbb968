//! Security contexts in files: one with the keys, which people write, and beside it one with the state, which is written
//! here.
//!
//! A file of keys is a JSON object, or a list of them for a server with several peers:
//!
//! ```json
//! {
//!   "master_secret": "0102030405060708090a0b0c0d0e0f10",
//!   "master_salt": "9e7ca92223786340",
//!   "sender_id": "01",
//!   "recipient_id": "02",
//!   "state": "client.state"
//! }
//! ```
//!
//! Byte strings are hexadecimal digits. `master_secret`, `sender_id` and `recipient_id` are needed; the peer has the same
//! secret and the IDs the other way round. `master_salt`, `id_context`, `algorithm` (`AES-CCM-16-64-128`), `hkdf`
//! (`HKDF-SHA-256`), `replay_window` (32) and `state` (the name of the file of keys with the IDs and `.state` behind it;
//! relative to the file of keys) can be left out.
//!
//! The file of state must never be deleted, copied back from a backup or shared while the keys live: it is what keeps a
//! nonce from being used twice. For the same reason no two contexts with one master secret, master salt and ID context may have
//! an ID in common (RFC 8613 §3.3): a server with several peers has an ID of its own for each of them, or a secret.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::{Map, Value};
use thalweg_transport::entropy;
use zeroize::Zeroizing;

use super::keyring::Names;
use super::owners::IdOwners;
use super::{Context, ContextParameters, Keyring, Past, SequenceStore};

/// Why security contexts cannot be read.
#[derive(Debug)]
pub struct FileError {
    path: PathBuf,
    reason: String,
}

impl FileError {
    fn new(path: &Path, reason: impl fmt::Display) -> FileError {
        FileError { path: path.to_owned(), reason: reason.to_string() }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the OSCORE file {} cannot be used: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for FileError {}

/// Reads the contexts of a server.
///
/// # Errors
/// When the file cannot be read or understood, two of its contexts cannot be used beside each other, or another process uses the
/// state of one of them.
pub fn load_keyring(path: &Path) -> Result<Keyring, FileError> {
    let contexts = load(path, &[], &Mutex::default())?.into_iter().map(|opened| opened.context);
    Keyring::new(contexts).map_err(|error| FileError::new(path, error))
}

/// Reads the context of a client.
///
/// # Errors
/// As [`load_keyring`], and when the file holds several contexts.
pub fn load_context(path: &Path) -> Result<Arc<Context>, FileError> {
    load(path, &[], &Mutex::default()).and_then(|contexts| only(path, contexts)).map(|opened| opened.context)
}

fn only(path: &Path, mut contexts: Vec<OpenedContext>) -> Result<OpenedContext, FileError> {
    match (contexts.pop(), contexts.len()) {
        (Some(opened), 0) => Ok(opened),
        _ => Err(FileError::new(path, "a client needs exactly one context in it")),
    }
}

/// The contexts of a client with several servers, whose files may be read again.
#[derive(Default)]
pub struct ClientContexts {
    known: Vec<KnownContext>,
    owners: Arc<Mutex<IdOwners>>,
}

/// A context for one server; it is free for another one when this is dropped.
#[derive(Debug)]
pub struct HeldContext {
    context: Arc<Context>,
    _holder: Arc<()>,
}

/// A context that somebody may still use.
struct KnownContext {
    parameters: ContextParameters,
    state: PathBuf,
    context: Weak<Context>,
    holder: Weak<()>,
}

/// Shows no keys.
impl fmt::Debug for ClientContexts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ClientContexts({})", self.known.len())
    }
}

impl HeldContext {
    /// The context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl ClientContexts {
    /// Reads the context in a file. While a request still uses the one that was read from it before, that goes on with its numbers.
    ///
    /// # Errors
    /// As [`load_context`], when another server has the context or one that cannot be used beside it, and when the file has another
    /// secret but the state of a context that is still in use.
    pub fn load(&mut self, path: &Path) -> Result<HeldContext, FileError> {
        self.known.retain(|known| known.context.strong_count() > 0);
        let before: Vec<OpenedContext> = self.known.iter().filter_map(KnownContext::opened).collect();
        let OpenedContext { parameters, state, context } = only(path, load(path, &before, &self.owners)?)?;
        if self.known.iter().any(|known| known.state == state && known.holder.strong_count() > 0) {
            return Err(FileError::new(path, "another server has this context; give both of them keys of their own"));
        }
        self.known.retain(|known| known.state != state);
        let holder = Arc::new(());
        let (weak, of) = (Arc::downgrade(&context), Arc::downgrade(&holder));
        self.known.push(KnownContext { parameters, state, context: weak, holder: of });
        Ok(HeldContext { context, _holder: holder })
    }
}

impl KnownContext {
    fn opened(&self) -> Option<OpenedContext> {
        let context = self.context.upgrade()?;
        Some(OpenedContext { parameters: self.parameters.clone(), state: self.state.clone(), context })
    }
}

/// A file of a server's contexts that may be read again.
pub struct KeyringFile {
    path: PathBuf,
    keyring: Arc<Keyring>,
    opened: Vec<OpenedContext>,
    owners: Arc<Mutex<IdOwners>>,
}

/// Contexts that were read, for [`KeyringFile::take_over`].
pub(crate) struct ReadContexts {
    path: PathBuf,
    opened: Vec<OpenedContext>,
    names: Names,
}

/// Shows the keyring, which shows no keys.
impl fmt::Debug for KeyringFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KeyringFile").field("path", &self.path).field("keyring", &self.keyring).finish()
    }
}

impl KeyringFile {
    /// Reads the contexts of a server.
    ///
    /// # Errors
    /// As [`load_keyring`].
    pub fn load(path: &Path) -> Result<KeyringFile, FileError> {
        let owners: Arc<Mutex<IdOwners>> = Arc::default();
        let opened = load(path, &[], &owners)?;
        let keyring = Keyring::new(contexts(&opened)).map_err(|error| FileError::new(path, error))?;
        Ok(KeyringFile { path: path.to_owned(), keyring: Arc::new(keyring), opened, owners })
    }

    /// The contexts.
    pub fn keyring(&self) -> &Arc<Keyring> {
        &self.keyring
    }

    /// The contexts of a client in the same process, none yet: no context of the client and of this server share an ID.
    pub fn client_contexts(&self) -> ClientContexts {
        ClientContexts { known: Vec::new(), owners: Arc::clone(&self.owners) }
    }

    /// Reads the file at `path`, which is this one or another, and replaces the contexts in the keyring. Those that stay the same
    /// go on with their numbers.
    ///
    /// # Errors
    /// As [`load_keyring`], and when a context has another secret but the state of the one before, whose numbers are in use; the
    /// contexts before hold then.
    pub fn reload(&mut self, path: &Path) -> Result<(), FileError> {
        let read = self.read(path)?;
        self.take_over(read);
        Ok(())
    }

    /// The first half of [`reload`](Self::reload), after which nothing is different yet.
    pub(crate) fn read(&self, path: &Path) -> Result<ReadContexts, FileError> {
        let opened = load(path, &self.opened, &self.owners)?;
        let names = Names::new(contexts(&opened)).map_err(|error| FileError::new(path, error))?;
        Ok(ReadContexts { path: path.to_owned(), opened, names })
    }

    /// The second half, which cannot fail.
    pub(crate) fn take_over(&mut self, read: ReadContexts) {
        self.keyring.set(read.names);
        (self.path, self.opened) = (read.path, read.opened);
    }

    /// Retires all contexts.
    pub fn clear(&mut self) {
        // No two of none have the same name.
        let _ = self.keyring.replace([]);
        self.opened.clear();
    }
}

fn contexts(opened: &[OpenedContext]) -> impl Iterator<Item = Arc<Context>> {
    opened.iter().map(|opened| Arc::clone(&opened.context))
}

/// A context with what it was made of.
struct OpenedContext {
    parameters: ContextParameters,
    state: PathBuf,
    context: Arc<Context>,
}

/// Reads a file; contexts that are among those `before` are taken over. All become owners of their IDs.
fn load(path: &Path, before: &[OpenedContext], owners: &Mutex<IdOwners>) -> Result<Vec<OpenedContext>, FileError> {
    let failed = |reason: &dyn fmt::Display| FileError::new(path, reason);
    let text = Zeroizing::new(fs::read_to_string(path).map_err(|error| failed(&error))?);
    let entries = match serde_json::from_str(&text).map_err(|error| failed(&error))? {
        Value::Array(entries) => entries,
        entry => vec![entry],
    };
    let context = |(number, entry): (usize, Value)| {
        let Value::Object(entry) = entry else {
            return Err(failed(&format_args!("context {} is no object", number + 1)));
        };
        open(path, entry, before).map_err(|reason| failed(&format_args!("context {}: {reason}", number + 1)))
    };
    let opened: Vec<OpenedContext> = entries.into_iter().enumerate().map(context).collect::<Result<_, _>>()?;
    let mut owners = owners.lock().unwrap_or_else(PoisonError::into_inner);
    owners.forget_unused();
    opened.iter().try_for_each(|one| owners.add(&one.context, Some(path))).map_err(|error| failed(&error))?;
    Ok(opened)
}

/// Makes the context of one entry, with its state.
fn open(path: &Path, mut entry: Map<String, Value>, before: &[OpenedContext]) -> Result<OpenedContext, String> {
    let parameters = parameters(&mut entry)?;
    let state = match entry.remove("state") {
        Some(Value::String(name)) => path.parent().unwrap_or(Path::new("")).join(name),
        Some(_) => return Err("state is the name of a file".to_owned()),
        None => default_state(path, &parameters),
    };
    if let Some(name) = entry.keys().next() {
        return Err(format!("{name} is no key of a context; the keys are {}", KEYS.join(", ")));
    }
    if let Some(known) = before.iter().find(|known| known.state == state) {
        return match known.parameters == parameters {
            true => Ok(OpenedContext { parameters, state, context: Arc::clone(&known.context) }),
            false => Err(format!("it has changed, so it needs another state than {}", state.display())),
        };
    }
    let (store, next) = StateFile::open(&state).map_err(|reason| format!("{}: {reason}", state.display()))?;
    let past = match next {
        None => Past::Unused,
        Some(_) => Past::Lost(entropy::seed().map_err(|error| error.to_string())?.to_be_bytes()),
    };
    let context = Context::new(&parameters, next.unwrap_or(0), Box::new(store), past);
    Ok(OpenedContext { parameters, state, context })
}

fn parameters(entry: &mut Map<String, Value>) -> Result<ContextParameters, String> {
    for (name, built) in [("algorithm", ALGORITHM), ("hkdf", HKDF)] {
        match entry.remove(name) {
            None => {}
            Some(Value::String(asked)) if asked == built => {}
            Some(asked) => return Err(format!("{name} {asked} is not built in; use {built}")),
        }
    }
    let mut bytes = |name: &str| entry.remove(name).map(|value| byte_string(name, value)).transpose();
    let needed = |name: &str, value: Option<_>| value.ok_or_else(|| format!("{name} is missing"));
    let secret = needed("master_secret", bytes("master_secret")?)?;
    let sender_id = needed("sender_id", bytes("sender_id")?)?;
    let recipient_id = needed("recipient_id", bytes("recipient_id")?)?;
    let parameters = ContextParameters::new(&secret, &sender_id, &recipient_id).map_err(|error| error.to_string())?;
    let mut parameters = parameters.with_salt(&bytes("master_salt")?.unwrap_or_default());
    if let Some(id_context) = bytes("id_context")? {
        parameters = parameters.with_id_context(&id_context).map_err(|error| error.to_string())?;
    }
    if let Some(size) = entry.remove("replay_window") {
        let size = size.as_u64().and_then(|size| u32::try_from(size).ok()).unwrap_or(0);
        parameters = parameters.with_replay_window(size).map_err(|error| error.to_string())?;
    }
    Ok(parameters)
}

/// The bytes of a text of hexadecimal digits. The text is wiped: it may be a secret, so it is in no error either.
fn byte_string(name: &str, value: Value) -> Result<Zeroizing<Vec<u8>>, String> {
    let Value::String(text) = value else { return Err(format!("{name} is a text of hexadecimal digits")) };
    let text = Zeroizing::new(text);
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8); // At most 15.
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
    bytes.map(Zeroizing::new).ok_or_else(|| format!("{name} is a text of hexadecimal digits, two for each byte"))
}

/// `keys.json` with the IDs 01 and 02 gets `keys.json.01-02.state`, or with an ID context `keys.json.01-02-37cb.state`.
fn default_state(path: &Path, parameters: &ContextParameters) -> PathBuf {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{}", hex(parameters.sender_id()), hex(parameters.recipient_id())));
    if let Some(id_context) = parameters.id_context() {
        name.push(format!("-{}", hex(id_context)));
    }
    name.push(".state");
    path.with_file_name(name)
}

/// The state of one context: the sequence number below which all may have been used. Locked as long as it is open.
struct StateFile {
    path: PathBuf,
    _lock: File,
}

impl StateFile {
    /// Opens a state; gives the next sequence number, or `None` when there was no state: the context is new.
    fn open(path: &Path) -> Result<(StateFile, Option<u64>), String> {
        let lock = with_suffix(path, ".lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(lock);
        let lock = lock.map_err(|error| format!("its lock cannot be opened: {error}"))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => {
                "another process uses this context; end it, or give both of them keys of their own".to_owned()
            }
            fs::TryLockError::Error(error) => format!("it cannot be locked: {error}"),
        })?;
        let mut file = StateFile { path: path.to_owned(), _lock: lock };
        let next = match fs::read_to_string(path) {
            Ok(text) => Some(read_state(&text).ok_or("it is damaged; give both ends a new master_secret")?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.to_string()),
        };
        if next.is_none() {
            // From now on the context is not new any more, whatever happens.
            file.reserve(0).map_err(|error| format!("it cannot be written: {error}"))?;
        }
        Ok((file, next))
    }
}

impl SequenceStore for StateFile {
    fn reserve(&mut self, end: u64) -> io::Result<()> {
        let new = with_suffix(&self.path, ".new");
        let mut file = File::create(&new)?;
        writeln!(file, "{{\"{NEXT}\": {end}}}")?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        // The name is as lasting as the content only once the directory is.
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }
}

fn read_state(text: &str) -> Option<u64> {
    serde_json::from_str::<Value>(text).ok()?.get(NEXT)?.as_u64()
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

const NEXT: &str = "next_sequence_number";
const ALGORITHM: &str = "AES-CCM-16-64-128";
const HKDF: &str = "HKDF-SHA-256";
const KEYS: [&str; 9] = [
    "master_secret",
    "master_salt",
    "sender_id",
    "recipient_id",
    "id_context",
    "algorithm",
    "hkdf",
    "replay_window",
    "state",
];
