//! The forward proxy of a gateway, whose destinations change with its file.

use std::sync::{Arc, PoisonError, RwLock};

use crate::interaction::guard::Guard;
use crate::interaction::handler::{Class, Handler};
use crate::message::{CoapRequest, Response};
use crate::proxy::{Destinations, ForwardProxy, Relay};

/// Goes where the plan lets it go.
pub(super) struct GatewayProxy {
    relay: Relay,
    proxy: RwLock<Arc<ForwardProxy>>,
    guard: Arc<Guard>,
}

impl GatewayProxy {
    pub(super) fn new(relay: Relay, destinations: Destinations, guard: Arc<Guard>) -> GatewayProxy {
        let proxy = RwLock::new(Arc::new(ForwardProxy::new(relay.clone(), destinations)));
        GatewayProxy { relay, proxy, guard }
    }

    /// Goes to other destinations from now on. Requests that found the ones before have passed the rules before.
    pub(super) fn set_destinations(&self, destinations: Destinations) {
        let proxy = Arc::new(ForwardProxy::new(self.relay.clone(), destinations));
        *self.proxy.write().unwrap_or_else(PoisonError::into_inner) = proxy;
    }

    fn proxy(&self) -> Arc<ForwardProxy> {
        Arc::clone(&self.proxy.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Handler for GatewayProxy {
    fn class(&self) -> Class {
        self.proxy().class()
    }

    fn handle(&self, request: &CoapRequest<'_>) -> Response {
        let proxy = self.proxy();
        // The destinations may be newer than the rules that let the request in.
        let refusal = request.caller.and_then(|caller| self.guard.refuse(request, caller));
        refusal.unwrap_or_else(|| proxy.handle(request))
    }
}
