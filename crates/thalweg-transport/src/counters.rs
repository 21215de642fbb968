//! Counters that sending and receiving threads raise and anybody reads.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($(#[$doc:meta])* $counts:ident, $atomics:ident { $($(#[$field_doc:meta])* $field:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $counts { $($(#[$field_doc])* pub $field: u64),* }

        #[derive(Debug, Default)]
        pub(crate) struct $atomics { $(pub(crate) $field: AtomicU64),* }

        impl $atomics {
            pub(crate) fn read(&self) -> $counts {
                $counts { $($field: self.$field.load(Ordering::Relaxed)),* }
            }
        }
    };
}

counters! {
    /// Counts of sent datagrams since the sockets were opened.
    SendCounts, SendCounters {
        /// System calls that handed datagrams to the kernel.
        calls,
        /// Datagrams the kernel took; each destination counts.
        datagrams,
        /// Calls' messages that the kernel cut into several datagrams (GSO).
        segmented_messages,
        /// Times that sending waited for room in the send buffer.
        waits,
        /// Datagrams given up because the send buffer or a queue below it stayed full.
        dropped,
        /// Messages that left by the other socket because their path is too narrow: in IP fragments.
        fragmented,
        /// Datagrams refused for another reason: no route, a firewall, too large.
        refused,
        /// Errors of earlier datagrams (port unreachable and the like) that a send call reported.
        asynchronous_errors,
        /// Datagrams whose destination no socket or interface can reach.
        unroutable,
    }
}

counters! {
    /// Counts of received datagrams since the sockets were opened.
    ReceiveCounts, ReceiveCounters {
        /// System calls that asked the kernel for datagrams.
        calls,
        /// Calls that found nothing.
        empty_calls,
        /// System calls that waited for readiness.
        waits,
        /// Datagrams received, GRO buffers taken apart.
        datagrams,
        /// Bytes of these datagrams.
        bytes,
        /// Messages that GRO had joined from several datagrams.
        joined_messages,
        /// Datagrams that did not fit their buffer, or whose control messages did not; thrown away.
        truncated,
        /// Datagrams from interfaces that are not in use; thrown away.
        foreign_interface,
        /// Datagrams that the kernel lost because a receive buffer was full, except those of sockets that have a filter.
        kernel_drops,
        /// Datagrams that the kernel kept from sockets that have a filter, as those of a participant for discovery have: what the
        /// filter refused, and what found a full receive buffer, which the kernel does not tell apart.
        filtered,
        /// Entries of the error queues: ports unreachable and the like.
        asynchronous_errors,
    }
}

#[inline]
pub(crate) fn add(counter: &AtomicU64, count: usize) {
    if count > 0 {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// As [`add`], for a counter that only one thread raises: without a locked instruction.
#[inline]
pub(crate) fn bump(counter: &AtomicU64, count: usize) {
    if count > 0 {
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(count as u64), Ordering::Relaxed);
    }
}
