//! What a gateway answers besides its handlers: the directory, reverse proxies and the store.

use std::sync::{Arc, PoisonError, RwLock};

use crate::directory::DirectoryHandler;
use crate::interaction::guard::Guard;
use crate::interaction::handler::{Catalog, CatalogAttachment, Class, Existence, Terms};
use crate::interaction::server::Notifier;
use crate::link_format::WebLink;
use crate::message::{CoapRequest, Response};
use crate::proxy::ReverseProxy;
use crate::resource::{LocalStore, respond, system_clock};

/// Parts of the catalog that change while the server runs.
pub(super) struct GatewayCatalog {
    store: LocalStore,
    directory: RwLock<Option<DirectoryHandler>>,
    reverse: RwLock<Vec<Arc<ReverseProxy>>>,
    guard: Arc<Guard>,
}

impl GatewayCatalog {
    pub(super) fn new(store: LocalStore, guard: Arc<Guard>) -> GatewayCatalog {
        GatewayCatalog { store, directory: RwLock::default(), reverse: RwLock::default(), guard }
    }

    /// Serves a directory, or none; one that goes on keeps its registrations.
    pub(super) fn set_directory(&self, serves: bool) {
        let mut directory = self.directory.write().unwrap_or_else(PoisonError::into_inner);
        match serves {
            true => drop(directory.get_or_insert_with(|| DirectoryHandler::new(system_clock()))),
            false => *directory = None,
        }
    }

    pub(super) fn set_reverse(&self, proxies: Vec<Arc<ReverseProxy>>) {
        *self.reverse.write().unwrap_or_else(PoisonError::into_inner) = proxies;
    }
}

impl Catalog for GatewayCatalog {
    /// Devices and other things may keep a request waiting.
    fn class(&self) -> Class {
        self.store.class()
    }

    /// As [`handle`](Catalog::handle) finds it: the directory, a reverse proxy, else the store, which evaluates conditions.
    fn terms(&self, request: &CoapRequest<'_>) -> Terms {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        if directory.as_ref().is_some_and(|directory| directory.has(request)) {
            return Terms::default();
        }
        let reverse = self.reverse.read().unwrap_or_else(PoisonError::into_inner);
        match reverse.iter().any(|proxy| proxy.covers(request)) {
            true => Terms { forwards: true, ..Terms::default() },
            false => Catalog::terms(&self.store, request),
        }
    }

    fn existence(&self, request: &CoapRequest<'_>) -> Existence {
        Catalog::existence(&self.store, request)
    }

    fn handle(&self, request: &CoapRequest<'_>) -> Option<Response> {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner).clone();
        // Cloned, so that no lock is held while another thing is asked.
        let reverse = self.reverse.read().unwrap_or_else(PoisonError::into_inner).clone();
        let resource = self.store.find_asked(request).ok();
        // What was found may be newer than the rules that let the request in.
        let refusal = request.caller.and_then(|caller| self.guard.refuse(request, caller));
        if refusal.is_some() {
            return refusal;
        }
        if let Some(answer) = directory.and_then(|directory| directory.handle(request)) {
            return Some(answer);
        }
        if let Some(answer) = reverse.iter().find_map(|proxy| proxy.handle(request)) {
            return Some(answer);
        }
        resource.map(|resource| respond(&*resource, request))
    }

    fn links(&self) -> Vec<WebLink> {
        let mut links = self.store.links();
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        links.extend(directory.iter().flat_map(DirectoryHandler::links));
        let reverse = self.reverse.read().unwrap_or_else(PoisonError::into_inner);
        links.extend(reverse.iter().map(|proxy| WebLink::new(format!("/{}", proxy.root()))));
        links
    }

    fn attach(&self, notifier: Notifier) -> Option<CatalogAttachment> {
        self.store.attach(notifier)
    }

    fn handle_observers(&self, home: usize, path: &str, count: usize) {
        Catalog::handle_observers(&self.store, home, path, count);
    }
}
