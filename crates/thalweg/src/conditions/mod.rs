//! Conditions to wait for, alone as futures or many at once in a [`WaitSet`] (DDS 1.4 §2.2.4.4).
//!
//! | condition | made by | is true while |
//! |---|---|---|
//! | [`StatusCondition`] | [`DataReader::status_condition`], [`DataWriter::status_condition`] | a status of a kind has changed since it was read or told |
//! | [`ReadCondition`] | [`DataReader::read_condition`] | the reader holds samples in given states |
//! | [`ReadCondition`] with a predicate | [`DataReader::query_condition`] | it holds such samples whose value is selected |
//! | [`GuardCondition`] | [`GuardCondition::new`] | the application says so |
//!
//! A condition may outlive the reader or writer that it is of: it is false then, and keeps nothing of it in memory.
//!
//! [`DataReader::status_condition`]: crate::DataReader::status_condition
//! [`DataWriter::status_condition`]: crate::DataWriter::status_condition
//! [`DataReader::read_condition`]: crate::DataReader::read_condition
//! [`DataReader::query_condition`]: crate::DataReader::query_condition

mod guard;
mod read;
mod status;
mod wait_set;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::runtime::WatchId;
pub use guard::GuardCondition;
pub use read::ReadCondition;
use sealed::Source;
pub(crate) use status::Changing;
pub use status::{StatusCondition, StatusKinds};
pub use wait_set::{ConditionId, WaitSet};

/// Something that is true or not, and that tells when it may have become true. Thalweg's own types implement it.
pub trait Condition: sealed::Sealed {
    /// Whether it is true now.
    fn trigger_value(&self) -> bool {
        self.source().is_triggered()
    }

    /// Ends as soon as it is true. May be dropped at any time.
    fn until_triggered(&self) -> Triggered {
        Triggered { source: self.source(), watch: None }
    }
}

/// A future that ends when a condition is true; see [`Condition::until_triggered`].
pub struct Triggered {
    source: Arc<dyn Source>,
    watch: Option<WatchId>,
}

impl Future for Triggered {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Triggered { source, watch } = self.get_mut();
        if !source.is_triggered() {
            source.arm(watch, context.waker());
            if !source.is_triggered() {
                return Poll::Pending;
            }
        }
        source.disarm(watch);
        Poll::Ready(())
    }
}

impl Drop for Triggered {
    fn drop(&mut self) {
        self.source.disarm(&mut self.watch);
    }
}

impl fmt::Debug for Triggered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Triggered").finish_non_exhaustive()
    }
}

mod sealed {
    use std::sync::Arc;
    use std::task::Waker;

    use crate::runtime::WatchId;

    /// Keeps the details of conditions changeable.
    pub trait Sealed {
        #[doc(hidden)]
        fn source(&self) -> Arc<dyn Source>;
    }

    /// What a condition looks at.
    pub trait Source: Send + Sync {
        /// Whether the condition is true.
        fn is_triggered(&self) -> bool;

        /// Lets the next change wake `waker`, once.
        fn arm(&self, watch: &mut Option<WatchId>, waker: &Waker);

        /// Ends a watch.
        fn disarm(&self, watch: &mut Option<WatchId>);
    }
}
