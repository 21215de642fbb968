//! The types of writers with OWNERSHIP EXCLUSIVE: a reader has an owner for each instance, and only the type tells instances apart.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::discovery::PublicationData;
use thalweg::qos::Ownership;
use thalweg::types::{Guid, Keyed};
use thalweg::{DomainParticipant, KeyOf, Type};
use thalweg_recording::instance::instance_of;
use thalweg_recording::type_search::TypeSearch;
use thalweg_types::Types;

/// The types of a topic's EXCLUSIVE writers, by their names.
#[derive(Default)]
pub struct OwnedTypes(BTreeMap<String, OwnedType>);

struct OwnedType {
    /// Its writers in the present look.
    writers: usize,
    /// Goes on until the type is found, or is not.
    search: Option<TypeSearch>,
    /// Writers whose descriptions the search has.
    asked: HashSet<Guid>,
    found: Option<Arc<Type>>,
}

/// How a reader tells the instances of a writer apart.
pub enum Instances {
    /// Not at all.
    One,
    /// By their keys.
    ByKey(KeyOf),
    /// That is not known yet: the type is looked for.
    Pending,
}

impl OwnedTypes {
    /// Begins a look at the writers that are there.
    pub fn begin_look(&mut self) {
        self.0.values_mut().for_each(|of| of.writers = 0);
    }

    /// Takes a writer that is there.
    pub fn add_writer(&mut self, data: &PublicationData) -> Instances {
        if data.qos.ownership.kind() != Ownership::Exclusive || data.guid.entity.keyed() == Keyed::No {
            return Instances::One;
        }
        let of = self.0.entry(data.type_name.clone()).or_insert_with(|| OwnedType {
            writers: 0,
            search: Some(TypeSearch::new(Instant::now())),
            asked: HashSet::new(),
            found: None,
        });
        of.writers += 1;
        match (&mut of.search, &of.found) {
            (Some(search), _) => {
                if let Some(information) = &data.type_information
                    && of.asked.insert(data.guid)
                {
                    search.add_description(data.guid.prefix, information);
                }
                Instances::Pending
            }
            (None, Some(found)) => Instances::ByKey(key_of(Arc::clone(found))),
            (None, None) => Instances::One,
        }
    }

    /// Ends a look: forgets the types that no writer has any more, and asks for those that are not known yet.
    pub fn end_look(&mut self, participant: &DomainParticipant) {
        self.0.retain(|_, of| of.writers > 0);
        let now = Instant::now();
        let known = |name: &str| Ok(Types::default().find_type(name).cloned());
        for (name, of) in &mut self.0 {
            if let Some(search) = &mut of.search
                && let Some(found) = search.look(now, participant, &known, name, ASKING_TIME)
            {
                (of.search, of.found) = (None, found.ok().map(|(of, _)| Arc::new(of)));
            }
        }
    }

    /// Why the writers are not all counted, if they are not.
    pub fn uncounted(&self) -> Option<&'static str> {
        let is_one = |of: &OwnedType| of.writers > 1 && of.search.is_none() && of.found.is_none();
        self.0.values().any(is_one).then_some(ONE_COUNTS)
    }
}

/// Tells instances apart by this type. Samples that have another definition of it are of one instance: otherwise they would count as lost.
fn key_of(of: Arc<Type>) -> KeyOf {
    Arc::new(move |bytes, kind| Some(instance_of(&of, bytes, kind).unwrap_or_default()))
}

/// What becomes of several writers whose instances cannot be told apart.
const ONE_COUNTS: &str = "only the strongest of its EXCLUSIVE writers counts: its type is not known";
/// Time in which a question about a type leaves.
const ASKING_TIME: Duration = Duration::from_millis(1);
