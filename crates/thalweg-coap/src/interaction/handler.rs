//! Handlers of requests, and their threads.

use super::server::Notifier;
use crate::link_format::WebLink;
use crate::message::{CoapRequest, Response};

/// A resource class: handlers of one class share a pool and its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u8);

impl ClassId {
    /// The class of handlers that block; also of those that were found to.
    pub const BLOCKING: ClassId = ClassId(0);
    /// The class of handlers that drive devices, so that a slow sensor delays only requests to it.
    pub const DEVICE: ClassId = ClassId(1);
}

/// The class of a handler: its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// On the thread that received the request. It must not block, and take 50 µs at most; one that takes longer again
    /// and again is moved to [`ClassId::BLOCKING`].
    Inline,
    /// In the pool of this class.
    Pooled(ClassId),
}

/// Answers the requests for one path. Called by several threads at once.
pub trait Handler: Send + Sync {
    /// Its class; read once, when it is added.
    fn class(&self) -> Class;

    /// Answers a request. A panic becomes 5.00 Internal Server Error.
    fn handle(&self, request: &CoapRequest<'_>) -> Response;
}

/// A handler made of a function.
pub struct Function<F> {
    class: Class,
    function: F,
}

impl<F: Fn(&CoapRequest<'_>) -> Response + Send + Sync> Function<F> {
    /// A handler that runs on the receiving thread.
    pub fn inline(function: F) -> Function<F> {
        Function { class: Class::Inline, function }
    }

    /// A handler that runs in the pool of `class`.
    pub fn pooled(class: ClassId, function: F) -> Function<F> {
        Function { class: Class::Pooled(class), function }
    }
}

impl<F: Fn(&CoapRequest<'_>) -> Response + Send + Sync> Handler for Function<F> {
    fn class(&self) -> Class {
        self.class
    }

    fn handle(&self, request: &CoapRequest<'_>) -> Response {
        (self.function)(request)
    }
}

/// Resources that come and go while the server runs; consulted for every path without a handler.
pub trait Catalog: Send + Sync {
    /// The class of its requests.
    fn class(&self) -> Class;

    /// Answers a request; `None` when there is no such resource.
    fn handle(&self, request: &CoapRequest<'_>) -> Option<Response>;

    /// The resources there are now.
    fn links(&self) -> Vec<WebLink>;

    /// A server answers for it from now on: changes are to be told to `notifier` until the result is dropped. By default
    /// nothing changes by itself.
    fn attach(&self, _notifier: Notifier) -> Option<CatalogAttachment> {
        None
    }

    /// The resource at `path`, such as `/a/b`, has observers by way of the loop `home`, or has none any more. By
    /// default that makes no difference.
    fn handle_observers(&self, _home: usize, _path: &str, _count: usize) {}
}

/// Ends what [`Catalog::attach`] began when it is dropped.
pub type CatalogAttachment = Box<dyn Send + Sync>;
