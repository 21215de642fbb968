//! What is asked of which participant, when it is asked again, and what is answered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use thalweg_cdr::description::COMPONENT_TYPES_MAX;
use thalweg_rtps::participant::ServiceRefusal;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{EntityId, Guid, GuidPrefix};
use thalweg_types::type_object::lookup::{
    LookupAnswer, LookupCall, LookupReply, LookupRequest, RequestIdentity, instance_name,
};
use thalweg_types::type_object::{Dependencies, LibraryError, TypeIdentifier, TypeLibrary, TypeWithSize};

use super::REQUEST_WRITER;

/// Most objects asked for at the same time, chosen by us as a quarter of what the library holds.
pub(super) const WANTED_MAX: usize = 4_096;
/// Most objects that one participant is asked for at the same time: the others are asked for when it has answered, and what one names
/// leaves room for questions to others.
const WANTED_OF_ONE_MAX: usize = WANTED_MAX / 4;
/// Most objects in one request.
pub(super) const BATCH_MAX: usize = 64;
/// Times that a participant is asked for an object; after the last one its type is known by its name alone.
const TRIES_MAX: u8 = 4;
/// Most participants that are asked for an object, one after the other: some may be silent, or lie.
const ASKED_MAX: usize = 8;
/// Time after which a request is repeated: some round trips of a slow link.
const PATIENCE: Duration = Duration::from_millis(500);
/// Most identifiers in an answer about dependencies.
pub(super) const DEPENDENCIES_MAX: usize = 256;

/// The open questions.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// By what names an object, or those of a component together.
    wanted: BTreeMap<TypeIdentifier, Wanted>,
    /// Objects that nobody gave, with those who were asked.
    hopeless: BTreeMap<TypeIdentifier, Vec<GuidPrefix>>,
    number: i64,
    /// Whether something may be comparable now that was not.
    has_news: bool,
    /// Whether a question was added that was not asked yet.
    has_new: bool,
}

#[derive(Debug)]
struct Wanted {
    /// Who is asked, and who was before.
    asked: Vec<GuidPrefix>,
    /// Who is asked next.
    others: VecDeque<GuidPrefix>,
    /// How often the last of them was.
    tries: u8,
    /// When it is asked for next.
    at: Instant,
}

impl Wanted {
    /// Goes on with the next participant that has named the object, if there is one.
    fn ask_another(&mut self) -> bool {
        let Some(next) = self.others.pop_front() else { return false };
        self.asked.push(next);
        self.tries = 0;
        true
    }
}

impl Questions {
    /// Notes objects that a participant is to be asked for.
    pub(super) fn want(&mut self, from: GuidPrefix, objects: impl Iterator<Item = TypeIdentifier>) {
        let mut of_it = self.wanted.values().filter(|wanted| wanted.asked.last() == Some(&from)).count();
        for object in objects {
            if let Some(wanted) = self.wanted.get_mut(&object) {
                let count = wanted.asked.len() + wanted.others.len();
                if count < ASKED_MAX && !wanted.asked.contains(&from) && !wanted.others.contains(&from) {
                    wanted.others.push_back(from);
                }
                continue;
            }
            let before = self.hopeless.get(&object).map_or(&[][..], Vec::as_slice);
            let is_full = self.wanted.len() >= WANTED_MAX || of_it >= WANTED_OF_ONE_MAX;
            if is_full || before.len() >= ASKED_MAX || before.contains(&from) {
                continue;
            }
            of_it += 1;
            let asked = before.iter().copied().chain([from]).collect();
            self.wanted.insert(object, Wanted { asked, others: VecDeque::new(), tries: 0, at: Instant::ZERO });
            self.has_new = true;
        }
    }

    /// A participant that gave none of these objects is to be asked for them once more.
    pub(super) fn ask_again(&mut self, from: GuidPrefix, objects: &[TypeIdentifier]) {
        for object in objects {
            if let Some(asked) = self.hopeless.get_mut(object) {
                asked.retain(|asked| *asked != from);
            }
        }
        self.want(from, objects.iter().cloned());
    }

    /// Whether an object is of use, also if it comes after it was given up.
    fn waits_for(&self, object: &TypeIdentifier) -> bool {
        self.wanted.contains_key(object) || self.hopeless.contains_key(object)
    }

    /// Objects that are asked for.
    pub(super) fn open(&self) -> usize {
        self.wanted.len()
    }

    pub(super) fn gave_up(&self, object: &TypeIdentifier) -> bool {
        self.hopeless.contains_key(object) && !self.wanted.contains_key(object)
    }

    /// When there is something to ask or to tell.
    pub(super) fn due(&self) -> Instant {
        if self.has_news || self.has_new {
            return Instant::ZERO;
        }
        self.wanted.values().map(|wanted| wanted.at).min().unwrap_or(Instant::NEVER)
    }

    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// The requests that are due.
    pub(super) fn poll(&mut self, now: Instant, own: GuidPrefix) -> Vec<LookupRequest> {
        self.has_new = false;
        let is_over = |wanted: &mut Wanted| wanted.at <= now && wanted.tries >= TRIES_MAX && !wanted.ask_another();
        let over: Vec<(TypeIdentifier, Wanted)> = self.wanted.extract_if(.., |_, wanted| is_over(wanted)).collect();
        for (object, wanted) in over {
            if self.hopeless.len() >= WANTED_MAX {
                self.hopeless.clear();
            }
            self.hopeless.insert(object, wanted.asked);
            self.has_news = true;
        }
        let mut due: BTreeMap<GuidPrefix, Vec<TypeIdentifier>> = BTreeMap::new();
        for (object, wanted) in &mut self.wanted {
            if wanted.at <= now {
                wanted.tries += 1;
                wanted.at = now + PATIENCE;
                let from = wanted.asked.last().copied().unwrap_or_default();
                due.entry(from).or_default().extend(asked(object, wanted.tries));
            }
        }
        let mut requests = Vec::new();
        for (from, objects) in due {
            for batch in objects.chunks(BATCH_MAX) {
                self.number += 1;
                let identity =
                    RequestIdentity { writer: Guid::new(own, REQUEST_WRITER).to_bytes(), number: self.number };
                let instance = instance_name(&Guid::new(from, EntityId::PARTICIPANT).to_bytes());
                requests.push(LookupRequest { identity, instance, call: LookupCall::Types(batch.to_vec()) });
            }
        }
        requests
    }

    /// Takes the objects of a reply that were asked for; whoever it comes from, an object is believed by its hash.
    pub(super) fn handle_reply(&mut self, library: &mut TypeLibrary, from: GuidPrefix, reply: LookupReply) {
        let Some(LookupAnswer::Types(objects, _)) = reply.answer else { return };
        let mut components: BTreeMap<TypeIdentifier, BTreeMap<i32, Vec<u8>>> = BTreeMap::new();
        for (identifier, bytes) in objects {
            match identifier {
                TypeIdentifier::Hash(_, hash) if self.waits_for(&identifier) => {
                    self.note(&identifier, library.insert(hash, &bytes), from);
                }
                TypeIdentifier::Component { index, .. } if self.waits_for(&identifier.whole()) => {
                    components.entry(identifier.whole()).or_default().insert(index, bytes);
                }
                _ => {}
            }
        }
        for (whole, parts) in components {
            let objects: Vec<Vec<u8>> = parts.into_values().collect();
            self.note(&whole, library.insert_component(&whole, &objects), from);
        }
    }

    fn note(&mut self, object: &TypeIdentifier, outcome: Result<(), LibraryError>, from: GuidPrefix) {
        match outcome {
            Ok(()) => {
                self.wanted.remove(object);
                self.hopeless.remove(object);
                self.has_news = true;
            }
            Err(error) => tracing::debug!(%from, "a type object is not taken: {error}"),
        }
    }
}

/// What a request names for an object. Of a component it is the whole (DDS-XTypes 1.3 §7.6.3.3.4); Cyclone DDS knows only its types,
/// each of which every other try names.
fn asked(object: &TypeIdentifier, tries: u8) -> Vec<TypeIdentifier> {
    match object {
        TypeIdentifier::Component { length, .. } if tries.is_multiple_of(2) => {
            (1..=*length).take(COMPONENT_TYPES_MAX).map(|index| object.part(index)).collect()
        }
        _ => vec![object.clone()],
    }
}

/// The answer to a request that is for this participant, of at most so many bytes in objects.
pub(super) fn answer(
    library: &TypeLibrary,
    own: GuidPrefix,
    request: &LookupRequest,
    bytes_max: usize,
) -> Option<LookupAnswer> {
    let mut room = usize::MAX;
    answer_within(&mut room, library, own, request, bytes_max).unwrap_or_default()
}

/// The same, and takes off `room` the bytes of the objects that are looked at to find what they refer to: they are many where the answer
/// is short.
///
/// # Errors
/// [`ServiceRefusal::OverLimit`] where they are more than `room`, which is 0 then.
pub(super) fn answer_within(
    room: &mut usize,
    library: &TypeLibrary,
    own: GuidPrefix,
    request: &LookupRequest,
    bytes_max: usize,
) -> Result<Option<LookupAnswer>, ServiceRefusal> {
    let is_ours = request.instance == instance_name(&Guid::new(own, EntityId::PARTICIPANT).to_bytes());
    // A request without a participant is for all; what is not here is then better left to others.
    let is_for_all = request.instance == instance_name(&[0; 16]);
    if !is_ours && !is_for_all {
        return Ok(None);
    }
    match &request.call {
        LookupCall::Types(types) => {
            let mut left = bytes_max;
            let mut objects = Vec::new();
            // Whoever asks for one type of a component gets all, since it can be believed only whole.
            let asked: BTreeSet<TypeIdentifier> = types.iter().take(4 * BATCH_MAX).map(TypeIdentifier::whole).collect();
            for identifier in asked {
                let Some(bytes) = library.object_bytes(&identifier).filter(|bytes| *bytes <= left) else { continue };
                left -= bytes;
                objects.extend(objects_of(library, &identifier));
            }
            Ok((is_ours || !objects.is_empty()).then_some(LookupAnswer::Types(objects, Vec::new())))
        }
        LookupCall::Dependencies(types, from) => {
            let asked: BTreeSet<&TypeIdentifier> = types.iter().take(4 * BATCH_MAX).collect();
            let Some(Dependencies { objects: found, bytes }) = library.dependencies(asked, *room) else {
                *room = 0;
                return Err(ServiceRefusal::OverLimit);
            };
            *room -= bytes;
            let skipped = from.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes) as usize);
            let with_size = |object: &TypeIdentifier| TypeWithSize {
                identifier: object.clone(),
                object_bytes: library.object_bytes(object).map_or(0, |bytes| bytes as u32),
            };
            let told: Vec<TypeWithSize> = found.iter().skip(skipped).take(DEPENDENCIES_MAX).map(with_size).collect();
            let end = skipped.saturating_add(told.len());
            let next = if end < found.len() { (end as u32).to_be_bytes().to_vec() } else { Vec::new() };
            Ok(Some(LookupAnswer::Dependencies(told, next)))
        }
    }
}

/// The objects that an identifier names, each with the identifier of its type.
fn objects_of(library: &TypeLibrary, of: &TypeIdentifier) -> Vec<(TypeIdentifier, Vec<u8>)> {
    match of {
        TypeIdentifier::Hash(_, hash) => {
            library.get(hash).map(|bytes| (of.clone(), bytes.to_vec())).into_iter().collect()
        }
        _ => {
            let parts = library.component(of).unwrap_or_default();
            (1..).zip(parts).map(|(index, bytes)| (of.part(index), bytes.to_vec())).collect()
        }
    }
}
