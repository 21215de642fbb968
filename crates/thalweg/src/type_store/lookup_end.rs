//! The questions and answers of one participant without a network, for the fuzzer.

use thalweg_rtps::time::Instant;
use thalweg_rtps::types::GuidPrefix;
use thalweg_types::Type;
use thalweg_types::type_object::lookup::{LookupAnswer, LookupReply, LookupRequest};
use thalweg_types::type_object::{Described, LibraryError, TypeIdentifier, TypeLibrary};

use super::questions::{self, BATCH_MAX, Questions, WANTED_MAX};

/// What a participant asks and answers about types.
#[derive(Debug, Default)]
pub struct LookupEnd {
    own: GuidPrefix,
    library: TypeLibrary,
    questions: Questions,
}

impl LookupEnd {
    /// Most objects asked for at the same time.
    pub const OPEN_MAX: usize = WANTED_MAX;
    /// Most identifiers in one request.
    pub const REQUEST_MAX: usize = BATCH_MAX;

    /// One that knows no type.
    pub fn new(own: GuidPrefix) -> LookupEnd {
        LookupEnd { own, ..LookupEnd::default() }
    }

    /// Makes a type known, as a topic does.
    ///
    /// # Errors
    /// When what was described is no type object that others can read.
    pub fn register(&mut self, of: &Described) -> Result<(), LibraryError> {
        of.objects.iter().try_for_each(|(hash, bytes)| self.library.insert_own(*hash, bytes))?;
        let mut components = of.components.iter();
        components.try_for_each(|one| self.library.insert_own_component(&one.identifier, &one.objects))
    }

    /// The type of an identifier.
    ///
    /// # Errors
    /// When objects are missing, or the type is beyond what is supported.
    pub fn resolve(&self, of: &TypeIdentifier) -> Result<Type, LibraryError> {
        self.library.resolve(of)
    }

    /// Notes objects that a participant is to be asked for.
    pub fn want(&mut self, from: GuidPrefix, objects: &[TypeIdentifier]) {
        self.questions.want(from, objects.iter().cloned());
    }

    /// A participant that gave none of these objects is to be asked once more.
    pub fn ask_again(&mut self, from: GuidPrefix, objects: &[TypeIdentifier]) {
        self.questions.ask_again(from, objects);
    }

    /// The requests that are due.
    pub fn poll(&mut self, now: Instant) -> Vec<LookupRequest> {
        self.questions.poll(now, self.own)
    }

    /// The answer to a request, with at most so many bytes of objects; `None` where it is for another participant.
    pub fn answer(&self, request: &LookupRequest, bytes_max: usize) -> Option<LookupAnswer> {
        questions::answer(&self.library, self.own, request, bytes_max)
    }

    /// Takes a reply.
    pub fn handle_reply(&mut self, from: GuidPrefix, reply: LookupReply) {
        self.questions.handle_reply(&mut self.library, from, reply);
    }

    /// Whether pairs of types may be comparable now that were not; true once.
    pub fn take_news(&mut self) -> bool {
        self.questions.take_news()
    }

    /// When there is something to ask or to tell; [`Instant::NEVER`] at rest.
    pub fn due(&self) -> Instant {
        self.questions.due()
    }

    /// Objects that are asked for.
    pub fn open(&self) -> usize {
        self.questions.open()
    }

    /// Objects that are known.
    pub fn known(&self) -> usize {
        self.library.len()
    }
}
