//! Handlers of requests, and their threads.

use super::server::Notifier;
use crate::link_format::WebLink;
use crate::message::{CoapRequest, ETag, Response};

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

/// What a handler agrees to, so that requests that do not fit are answered before they reach it (RFC 7252 §5.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Content formats of its representations; a request that accepts only others is answered 4.06. Default none: then only
    /// the format of its answers to GET and FETCH is compared.
    pub produces: &'static [u16],
    /// Content formats of payloads that it understands; others are answered 4.15. Default none: it decides itself.
    pub consumes: &'static [u16],
    /// Whether If-Match and If-None-Match are evaluated by what [`Handler::existence`] says; requests that change the resource
    /// then run one after the other. Default no: such requests are answered 4.02.
    pub conditional: bool,
    /// Whether requests to a group of hosts reach it. Default no: they are dropped.
    pub for_groups: bool,
    /// Whether it passes requests on to another server, so that conditions and critical options that are not understood are that
    /// one's, as far as they are safe to forward (RFC 7252 §5.7.1). Default no: such options are answered 4.02.
    pub forwards: bool,
}

/// Whether a resource exists, for conditional requests (RFC 7252 §5.10.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existence {
    /// It does not.
    Absent,
    /// It does; with the tags of its representations, as answers have them.
    Present(Vec<ETag>),
}

/// Answers the requests for one path. Called by several threads at once.
pub trait Handler: Send + Sync {
    /// Its class; read once, when it is added.
    fn class(&self) -> Class;

    /// What it agrees to; read once, when it is added.
    fn terms(&self) -> Terms {
        Terms::default()
    }

    /// Whether the resource that a request is for exists; asked only if its terms are conditional.
    fn existence(&self, _request: &CoapRequest<'_>) -> Existence {
        Existence::Present(Vec::new())
    }

    /// Answers a request. A panic becomes 5.00 Internal Server Error.
    fn handle(&self, request: &CoapRequest<'_>) -> Response;
}

/// A handler made of a function.
pub struct Function<F> {
    class: Class,
    terms: Terms,
    function: F,
}

impl<F: Fn(&CoapRequest<'_>) -> Response + Send + Sync> Function<F> {
    /// A handler that runs on the receiving thread.
    pub fn inline(function: F) -> Function<F> {
        Function { class: Class::Inline, terms: Terms::default(), function }
    }

    /// A handler that runs in the pool of `class`.
    pub fn pooled(class: ClassId, function: F) -> Function<F> {
        Function { class: Class::Pooled(class), terms: Terms::default(), function }
    }

    /// The same with these terms. A function cannot say what exists, so If-Match with a tag is never fulfilled.
    #[must_use]
    pub fn with_terms(self, terms: Terms) -> Function<F> {
        Function { terms, ..self }
    }
}

impl<F: Fn(&CoapRequest<'_>) -> Response + Send + Sync> Handler for Function<F> {
    fn class(&self) -> Class {
        self.class
    }

    fn terms(&self) -> Terms {
        self.terms
    }

    fn handle(&self, request: &CoapRequest<'_>) -> Response {
        (self.function)(request)
    }
}

/// Resources that come and go while the server runs; consulted for every path without a handler.
pub trait Catalog: Send + Sync {
    /// The class of its requests.
    fn class(&self) -> Class;

    /// What the resource of a request agrees to.
    fn terms(&self, _request: &CoapRequest<'_>) -> Terms {
        Terms::default()
    }

    /// Whether the resource that a request is for exists; asked only if its terms are conditional.
    fn existence(&self, _request: &CoapRequest<'_>) -> Existence {
        Existence::Present(Vec::new())
    }

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
