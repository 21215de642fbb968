//! Topics: a name, a type and the identification of instances.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thalweg_cdr as cdr;
use thalweg_rtps::history::PayloadKind;
use thalweg_rtps::participant::{KeyOf, KeySource};
use thalweg_rtps::types::{KeyHash, Keyed};
use thalweg_types::Type;
use thalweg_types::type_object::{Described, describe};

use crate::{Error, ErrorKind, TopicType};

/// Type parameter of endpoints that exchange bytes which the application serializes itself; see
/// [`DomainParticipant::create_raw_topic`](crate::DomainParticipant::create_raw_topic).
#[derive(Clone, Copy, Debug)]
pub enum Raw {}

/// A named stream of samples of type `T` (DDS 1.4 §2.2.2.3.2); `T` is a type that derives `Topic`, or [`Raw`].
///
/// Cheap to clone. Nothing is announced until an endpoint uses it. The endpoints of a participant use a name with one type:
/// creating one with another type fails while they live.
pub struct Topic<T> {
    description: Arc<TopicDescription>,
    type_marker: PhantomData<fn() -> T>,
}

/// State shared by the endpoints of a topic.
pub(crate) struct TopicDescription {
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) keyed: Keyed,
    pub(crate) keys: TopicKeys,
    /// The objects of its type, if it can be described.
    pub(crate) described: Option<Arc<Described>>,
}

/// Computes the instance of a serialized sample of a topic.
#[derive(Clone)]
pub(crate) enum TopicKeys {
    /// The hash that writers may send along.
    Wire,
    /// Generated code, which reads the key members and no more, or nothing.
    Generated(KeyOf),
    /// A function of the application, which may do and last as it likes: never under a lock, nor on the I/O thread.
    Application(KeyOf),
}

impl TopicKeys {
    /// The source of the keys of samples that a reader receives.
    pub(crate) fn source(&self) -> KeySource {
        match self {
            TopicKeys::Wire => KeySource::Wire,
            TopicKeys::Generated(key_of) => KeySource::Function(Arc::clone(key_of)),
            TopicKeys::Application(_) => KeySource::Driver,
        }
    }

    /// The instance of a sample that this thread writes.
    pub(crate) fn instance_of(&self, payload: &[u8], kind: PayloadKind) -> Option<KeyHash> {
        match self {
            TopicKeys::Wire => None,
            TopicKeys::Generated(key_of) | TopicKeys::Application(key_of) => key_of(payload, kind),
        }
    }
}

/// Longest topic or type name: `string<256>` of the built-in topics (RTPS 2.5 §9.6.3) less its terminating NUL.
const NAME_MAX_BYTES: usize = 255;

/// Displays as its type.
impl fmt::Display for TopicDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.keyed == Keyed::Yes { "with" } else { "without" };
        write!(f, "{:?} {key} a key", self.type_name)
    }
}

impl TopicDescription {
    /// Whether both have the same type.
    pub(crate) fn has_type_of(&self, other: &TopicDescription) -> bool {
        let differs = match (&self.described, &other.described) {
            (Some(one), Some(other)) => one.information.complete.of != other.information.complete.of,
            _ => false,
        };
        (&self.type_name, self.keyed) == (&other.type_name, other.keyed) && !differs
    }

    /// Refuses names that cannot be announced.
    pub(crate) fn check(&self, operation: &'static str) -> Result<(), Error> {
        for (what, name) in [("topic name", &self.name), ("type name", &self.type_name)] {
            let cause = if name.is_empty() {
                format!("failed: the {what} is empty")
            } else if name.len() > NAME_MAX_BYTES {
                format!("failed: the {what} has {} bytes", name.len())
            } else if name.contains('\0') {
                format!("failed: the {what} contains a NUL character")
            } else {
                continue;
            };
            let error = Error::new(ErrorKind::BadParameter, operation, cause);
            return Err(error.on_topic(&self.name).advise("use 1 to 255 bytes without NUL"));
        }
        Ok(())
    }
}

impl<T> Topic<T> {
    pub(crate) fn from_description(description: TopicDescription) -> Topic<T> {
        Topic { description: Arc::new(description), type_marker: PhantomData }
    }

    /// Its name; endpoints with equal names meet.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// The type's name; it must be equal on both sides as well.
    pub fn type_name(&self) -> &str {
        &self.description.type_name
    }

    /// Whether the type has a key, so that the topic has instances.
    pub fn keyed(&self) -> Keyed {
        self.description.keyed
    }

    pub(crate) fn description(&self) -> &Arc<TopicDescription> {
        &self.description
    }
}

impl<T: TopicType> Topic<T> {
    pub(crate) fn typed(name: &str) -> Topic<T> {
        let keyed = if T::KEYED { Keyed::Yes } else { Keyed::No };
        // A type may have been given a decoder by hand, which may panic: the I/O thread calls it.
        let key_of: KeyOf = Arc::new(|payload: &[u8], kind: PayloadKind| {
            let compute = || cdr::key_hash_of_payload::<T>(payload, kind == PayloadKind::Key).ok().map(KeyHash);
            catch_unwind(AssertUnwindSafe(compute)).unwrap_or_default()
        });
        Topic::from_description(TopicDescription {
            name: name.to_owned(),
            type_name: T::TYPE_NAME.to_owned(),
            keyed,
            keys: if T::KEYED { TopicKeys::Generated(key_of) } else { TopicKeys::Wire },
            described: T::description().and_then(|of| describe(&of).ok()).map(Arc::new),
        })
    }
}

impl Topic<Raw> {
    /// The same topic, whose type others are told as this one.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] when the type cannot be described.
    pub fn described_as(&self, of: &Type) -> Result<Topic<Raw>, Error> {
        let refused = |error| {
            Error::new(ErrorKind::BadParameter, "described_as", format!("failed: {error}"))
                .on_topic(&self.description.name)
        };
        let described = describe(of).map_err(refused)?;
        Ok(self.with(self.description.keys.clone(), Some(Arc::new(described))))
    }

    /// The same topic for readers that do not tell instances apart, as tools do that count or show what comes: all samples of a topic with
    /// a key are of one instance. No function is called for them, on no thread.
    pub fn without_instances(&self) -> Topic<Raw> {
        let one: KeyOf = Arc::new(|_: &[u8], _: PayloadKind| Some(KeyHash::default()));
        let keys = if self.keyed() == Keyed::Yes { TopicKeys::Generated(one) } else { TopicKeys::Wire };
        self.with(keys, self.description.described.clone())
    }

    fn with(&self, keys: TopicKeys, described: Option<Arc<Described>>) -> Topic<Raw> {
        let TopicDescription { name, type_name, keyed, .. } = &*self.description;
        Topic::from_description(TopicDescription {
            name: name.clone(),
            type_name: type_name.clone(),
            keyed: *keyed,
            keys,
            described,
        })
    }
}

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Topic { description: Arc::clone(&self.description), type_marker: PhantomData }
    }
}

impl<T> fmt::Debug for Topic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topic({:?}, {})", self.name(), self.type_name())
    }
}
