//! Futures that end when an endpoint fulfils a condition. They need no executor of their own and no thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::runtime::{Waiters, WatchId};

/// Something that tells waiting tasks of its changes.
pub(crate) trait Watched {
    fn waiters(&self) -> &Arc<Waiters>;
}

impl<C: Watched> Watched for Arc<C> {
    fn waiters(&self) -> &Arc<Waiters> {
        (**self).waiters()
    }
}

/// Repeats an attempt whenever the endpoint has changed, until it has a result. An attempt without a result changes nothing, so that
/// the future may be dropped at any time.
pub(crate) struct Until<'a, C: Watched, F> {
    of: &'a C,
    watch: Option<WatchId>,
    attempt: F,
}

impl<'a, C: Watched, F> Until<'a, C, F> {
    pub(crate) fn new<R>(of: &'a C, attempt: F) -> Until<'a, C, F>
    where
        F: FnMut(&C) -> Option<R>,
    {
        Until { of, watch: None, attempt }
    }
}

impl<C: Watched, R, F: FnMut(&C) -> Option<R> + Unpin> Future for Until<'_, C, F> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let Until { of, watch, attempt } = self.get_mut();
        poll_until(*of, watch, context, || attempt(of))
    }
}

impl<C: Watched, F> Drop for Until<'_, C, F> {
    fn drop(&mut self) {
        self.of.waiters().disarm(&mut self.watch);
    }
}

/// Attempts once, and once more with the watch armed, so that no change between the two goes unnoticed.
pub(crate) fn poll_until<R>(
    of: &impl Watched,
    watch: &mut Option<WatchId>,
    context: &Context<'_>,
    mut attempt: impl FnMut() -> Option<R>,
) -> Poll<R> {
    let result = attempt().or_else(|| {
        of.waiters().arm(watch, context.waker());
        attempt()
    });
    match result {
        Some(result) => {
            of.waiters().disarm(watch);
            Poll::Ready(result)
        }
        None => Poll::Pending,
    }
}
