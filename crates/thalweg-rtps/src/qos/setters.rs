//! QoS by one call for each policy: `WriterQos::default().keep_all().deadline(period)`.

use std::time::Duration;

use super::{
    DestinationOrder, Durability, DurabilityService, History, Liveliness, Ownership, Presentation, ReaderLifecycle,
    ReaderQos, Reliability, Representation, ResourceLimits, Transmission, TypeConsistency, WriterOwnership, WriterQos,
};

/// Makes a method for each policy, such as
/// `pub fn deadline(mut self, deadline: Duration) -> Self { self.timing.deadline = deadline; self }`.
macro_rules! setters {
    ($of:ident: $($(#[$doc:meta])* $name:ident: $value:ty => $($place:ident).+;)*) => {
        impl $of {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(mut self, $name: $value) -> $of {
                    self.$($place).+ = $name;
                    self
                }
            )*

            /// RELIABILITY RELIABLE, with [`MAX_BLOCKING_TIME`](super::MAX_BLOCKING_TIME).
            #[must_use]
            pub fn reliable(self) -> $of {
                self.reliability(Reliability::RELIABLE)
            }

            /// RELIABILITY BEST_EFFORT.
            #[must_use]
            pub fn best_effort(self) -> $of {
                self.reliability(Reliability::BestEffort)
            }

            /// HISTORY KEEP_LAST: the newest `depth` samples of each instance, at least 1.
            #[must_use]
            pub fn keep_last(self, depth: u32) -> $of {
                self.history(History::KeepLast(depth))
            }

            /// HISTORY KEEP_ALL.
            #[must_use]
            pub fn keep_all(self) -> $of {
                self.history(History::KeepAll)
            }

            /// DURABILITY TRANSIENT_LOCAL: late readers get what the writer holds.
            #[must_use]
            pub fn transient_local(self) -> $of {
                self.durability(Durability::TransientLocal)
            }

            /// PARTITION: names, with wildcards, of which one must fit one of the other side's.
            #[must_use]
            pub fn partition(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> $of {
                self.partition = names.into_iter().map(Into::into).collect();
                self
            }

            /// DATA_REPRESENTATION: encodings; of a writer the first one counts.
            #[must_use]
            pub fn data_representation(mut self, encodings: impl Into<Vec<Representation>>) -> $of {
                self.data_representation = encodings.into();
                self
            }

            /// USER_DATA: bytes that are announced with the endpoint.
            #[must_use]
            pub fn user_data(mut self, bytes: impl Into<Vec<u8>>) -> $of {
                self.attached.user = bytes.into();
                self
            }
        }
    };
}

setters! {
    WriterQos:
    /// RELIABILITY: whether lost samples are sent again, and the longest wait of a write for room.
    reliability: Reliability => reliability;
    /// DURABILITY: whether late readers get samples written before they came.
    durability: Durability => durability;
    /// DURABILITY_SERVICE: what a TRANSIENT or PERSISTENT writer keeps for late readers.
    durability_service: DurabilityService => durability_service;
    /// HISTORY: number of samples of an instance kept for repairs and late readers.
    history: History => history;
    /// RESOURCE_LIMITS: upper bounds on kept samples.
    resource_limits: ResourceLimits => resource_limits;
    /// DEADLINE: every instance is written at least once in this period.
    deadline: Duration => timing.deadline;
    /// LATENCY_BUDGET: acceptable delay of a sample.
    latency_budget: Duration => timing.latency_budget;
    /// LIFESPAN: lifetime of a sample.
    lifespan: Duration => timing.lifespan;
    /// LIVELINESS: the way in which readers learn that the writer is gone.
    liveliness: Liveliness => liveliness;
    /// OWNERSHIP, with its strength.
    ownership: WriterOwnership => ownership;
    /// DESTINATION_ORDER: which clock orders samples of several writers.
    destination_order: DestinationOrder => destination_order;
    /// TRANSPORT_PRIORITY: whose datagrams go first.
    transport_priority: i32 => transport_priority;
    /// PRESENTATION: grouping of changes of several instances.
    presentation: Presentation => presentation;
    /// By what way samples travel.
    transmission: Transmission => transmission;
    /// How long a reliable reader may owe acknowledgements without any progress.
    reader_patience: Duration => reader_patience;
}

setters! {
    ReaderQos:
    /// RELIABILITY: whether lost samples are requested again.
    reliability: Reliability => reliability;
    /// DURABILITY: whether the reader gets samples written before it matched.
    durability: Durability => durability;
    /// HISTORY: number of samples of an instance that wait for the application.
    history: History => history;
    /// RESOURCE_LIMITS: upper bounds on kept samples.
    resource_limits: ResourceLimits => resource_limits;
    /// DEADLINE: a sample of every instance is wanted at least once in this period.
    deadline: Duration => timing.deadline;
    /// LATENCY_BUDGET: acceptable delay of a sample.
    latency_budget: Duration => timing.latency_budget;
    /// TIME_BASED_FILTER: at most one sample of an instance is wanted in this period.
    minimum_separation: Duration => timing.minimum_separation;
    /// LIVELINESS: time after which the reader learns that a writer is gone.
    liveliness: Liveliness => liveliness;
    /// OWNERSHIP: whether an instance comes from several writers or from the strongest only.
    ownership: Ownership => ownership;
    /// DESTINATION_ORDER: which clock orders samples of several writers.
    destination_order: DestinationOrder => destination_order;
    /// TYPE_CONSISTENCY_ENFORCEMENT: how far a writer's type may differ from the reader's.
    type_consistency: TypeConsistency => type_consistency;
    /// PRESENTATION: grouping of changes of several instances.
    presentation: Presentation => presentation;
    /// READER_DATA_LIFECYCLE: how long the reader keeps what nobody writes any more.
    lifecycle: ReaderLifecycle => lifecycle;
}

impl WriterQos {
    /// Unregistering an instance does not dispose it (WRITER_DATA_LIFECYCLE).
    #[must_use]
    pub fn without_autodispose(mut self) -> WriterQos {
        self.autodispose = false;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::{AttachedData, ReaderTiming, WriterTiming};

    #[test]
    fn each_call_sets_its_policy_and_no_other() {
        let period = Duration::from_millis(7);
        let writer = WriterQos::default()
            .keep_last(3)
            .transient_local()
            .deadline(period)
            .lifespan(period * 2)
            .latency_budget(period * 3)
            .partition(["left"])
            .user_data(*b"us")
            .data_representation([Representation::Xcdr2])
            .without_autodispose();
        let expect = WriterQos {
            history: History::KeepLast(3),
            durability: Durability::TransientLocal,
            timing: WriterTiming { deadline: period, lifespan: period * 2, latency_budget: period * 3 },
            partition: vec!["left".to_owned()],
            attached: AttachedData { user: b"us".to_vec(), ..AttachedData::default() },
            data_representation: vec![Representation::Xcdr2],
            autodispose: false,
            ..WriterQos::default()
        };
        assert_eq!(writer, expect);
        let reader = ReaderQos::default().reliable().keep_all().minimum_separation(period).deadline(period * 2);
        let expect = ReaderQos {
            reliability: Reliability::RELIABLE,
            history: History::KeepAll,
            timing: ReaderTiming { minimum_separation: period, deadline: period * 2, ..ReaderTiming::default() },
            ..ReaderQos::default()
        };
        assert_eq!(reader, expect);
        assert_eq!(reader.best_effort().reliability, Reliability::BestEffort);
        assert_eq!(
            writer.reliability(Reliability::BestEffort).best_effort().transport_priority(46).transport_priority,
            46
        );
    }
}
