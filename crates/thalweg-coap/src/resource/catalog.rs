//! The resource handler: answers requests from the local store.

use std::sync::Arc;

use crate::interaction::handler::{Catalog, CatalogAttachment, Class, ClassId, Existence, Handler, Terms};
use crate::interaction::server::Notifier;
use crate::link_format::WebLink;
use crate::message::{CoapRequest, Code, Response};
use crate::resource::error::whole_seconds;
use crate::resource::{Get, LocalStore, Put, Resource, ResourceError, ResourceRepresentation};

impl Catalog for LocalStore {
    /// A device may keep a request waiting, so none may hold up the receiver.
    fn class(&self) -> Class {
        Class::Pooled(ClassId::DEVICE)
    }

    fn handle(&self, request: &CoapRequest<'_>) -> Option<Response> {
        let resource = self.find_asked(request).ok()?;
        Some(respond(&*resource, request))
    }

    fn terms(&self, request: &CoapRequest<'_>) -> Terms {
        let resource = self.find_asked(request);
        resource.map_or(RESOURCE_TERMS, |resource| terms(&*resource))
    }

    fn existence(&self, request: &CoapRequest<'_>) -> Existence {
        let resource = self.find_asked(request);
        resource.map_or(Existence::Absent, |resource| existence(&*resource, request))
    }

    fn links(&self) -> Vec<WebLink> {
        LocalStore::links(self)
    }

    fn attach(&self, notifier: Notifier) -> Option<CatalogAttachment> {
        Some(Box::new(self.on_change(Arc::new(move |path| notifier.change(&format!("/{path}"))))))
    }

    fn handle_observers(&self, home: usize, path: &str, count: usize) {
        self.set_network_observers(home, in_store(path), count);
    }
}

impl LocalStore {
    /// The resource that a request is for.
    ///
    /// # Errors
    /// As [`LocalStore::find`].
    pub(crate) fn find_asked(&self, request: &CoapRequest<'_>) -> Result<Arc<dyn Resource>, ResourceError> {
        self.find(in_store(&request.path()))
    }
}

/// A path as the store has it. Only the slash of the root is left out: a path with an empty segment in front is another one, whose
/// observers would be taken for those of the resource and never told of its changes.
fn in_store(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}

/// A resource as the handler of a path of its own: one that never waits is answered on the receiving thread.
pub struct ResourceHandler(pub Arc<dyn Resource>);

impl Handler for ResourceHandler {
    fn class(&self) -> Class {
        if self.0.blocks() { Class::Pooled(ClassId::DEVICE) } else { Class::Inline }
    }

    fn terms(&self) -> Terms {
        terms(&*self.0)
    }

    fn existence(&self, request: &CoapRequest<'_>) -> Existence {
        existence(&*self.0, request)
    }

    fn handle(&self, request: &CoapRequest<'_>) -> Response {
        respond(&*self.0, request)
    }
}

/// Formats are negotiated by the resource itself.
const RESOURCE_TERMS: Terms =
    Terms { produces: &[], consumes: &[], conditional: true, for_groups: false, forwards: false };

fn terms(resource: &dyn Resource) -> Terms {
    Terms { for_groups: resource.answers_groups(), ..RESOURCE_TERMS }
}

/// Whether a resource exists, with the tags of its representations in all formats of its link: a client may have any of them. A
/// link without formats, as that of another thing's resource, leaves the default one and the one of the payload.
fn existence(resource: &dyn Resource, request: &CoapRequest<'_>) -> Existence {
    let queries: Vec<&str> = request.queries().collect();
    if !resource.exists(&queries) {
        return Existence::Absent;
    }
    if !request.if_match().any(|tag| !tag.is_empty()) {
        return Existence::Present(Vec::new());
    }
    let link = resource.link();
    let named = link.attribute("ct").unwrap_or_default();
    let mut formats: Vec<Option<u16>> = named.split(' ').filter_map(|format| format.parse().ok()).map(Some).collect();
    if formats.is_empty() {
        formats.push(None);
        formats.extend(request.content_format().map(Some));
    }
    let representations = formats
        .into_iter()
        .filter_map(|accept| resource.get_for(&Get { accept, queries: &queries }, request.caller).ok());
    Existence::Present(representations.map(|representation| representation.etag()).collect())
}

/// Answers a request to a resource: GET, PUT, POST and DELETE, with ETag (RFC 7252 §5.8, §5.10.6). Conditions were evaluated
/// before.
pub fn respond(resource: &dyn Resource, request: &CoapRequest<'_>) -> Response {
    let answer = match request.code {
        Code::GET => get(resource, request).map(|representation| content(resource, request, representation)),
        Code::PUT | Code::POST => put(resource, request),
        Code::DELETE => delete(resource, request),
        _ => Err(ResourceError::NotAllowed(format!("/{} understands GET, PUT, POST and DELETE", resource.path()))),
    };
    answer.unwrap_or_else(|error| error.response())
}

fn get(resource: &dyn Resource, request: &CoapRequest<'_>) -> Result<ResourceRepresentation, ResourceError> {
    let queries: Vec<&str> = request.queries().collect();
    resource.get_for(&Get { accept: request.accept(), queries: &queries }, request.caller)
}

fn content(resource: &dyn Resource, request: &CoapRequest<'_>, representation: ResourceRepresentation) -> Response {
    let etag = representation.etag();
    let max_age = whole_seconds(representation.max_age);
    let response = if request.etags().any(|known| known == etag) {
        Response::new(Code::VALID)
    } else {
        representation.into_response()
    };
    let response = response.with_max_age(max_age).with_etag(etag);
    if resource.link().attribute("obs").is_some() { response.observable() } else { response }
}

fn put(resource: &dyn Resource, request: &CoapRequest<'_>) -> Result<Response, ResourceError> {
    let queries: Vec<&str> = request.queries().collect();
    let (content_format, payload) = (request.content_format(), request.payload);
    resource.put_for(&Put { content_format, payload, queries: &queries }, request.caller)?;
    Ok(Response::new(Code::CHANGED))
}

fn delete(resource: &dyn Resource, request: &CoapRequest<'_>) -> Result<Response, ResourceError> {
    let queries: Vec<&str> = request.queries().collect();
    resource.delete(&queries)?;
    Ok(Response::new(Code::DELETED))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::device::{Completion, Unit, Value};
    use crate::interaction::routes::Routes;
    use crate::message::{OptionNumber, RequestBuf, content_format};
    use crate::resource::{Property, PropertyDescription, Sampling, Source, system_clock};

    fn store() -> LocalStore {
        let store = LocalStore::new();
        let property = Property::pushed("a/level", "level", Unit::CELSIUS, Duration::from_millis(5900), system_clock());
        property.push(Value::Real(21.5));
        store.insert(Arc::new(property)).expect("inserted");
        let silent = Property::pushed("silent", "level", Unit::NONE, Duration::ZERO, system_clock());
        store.insert(Arc::new(silent)).expect("inserted");
        store
    }

    #[track_caller]
    fn ask(request: &RequestBuf) -> Response {
        let routes = Routes::new().with_catalog(Arc::new(store()));
        routes.handle(routes.find(&request.view()), &request.view())
    }

    #[test]
    fn a_reading_is_answered_with_its_age_and_tag() {
        let response = ask(&RequestBuf::get("/a/level"));
        assert_eq!((response.code, &*response.payload), (Code::CONTENT, b"21.5".as_slice()));
        assert_eq!((response.max_age, response.content_format), (Some(6), Some(content_format::TEXT)));
        assert!(response.observe.is_some(), "a registration is accepted");
        let etag = response.etag.expect("a tag");
        let again = ask(&RequestBuf::get("/a/level").with_option(OptionNumber::ETAG, &etag));
        assert_eq!((again.code, &*again.payload, again.etag), (Code::VALID, b"".as_slice(), Some(etag)));
        let json = ask(&RequestBuf::get("/a/level").with_accept(content_format::JSON));
        assert_eq!(&*json.payload, br#"{"value":21.5,"unit":"Cel"}"#);
        assert_ne!(json.etag, Some(etag));
    }

    #[test]
    fn refusals_say_why_and_when_to_ask_again() {
        let check = |request: &RequestBuf, code: Code, part: &str| {
            let response = ask(request);
            let text = String::from_utf8_lossy(&response.payload).into_owned();
            assert!(response.code == code && text.contains(part), "{:?} {text}", response.code);
            response.max_age
        };
        let silent = RequestBuf::get("/silent");
        assert_eq!(check(&silent, Code::SERVICE_UNAVAILABLE, "nothing has been published yet"), Some(1));
        check(&RequestBuf::put("/a/level", "1"), Code::METHOD_NOT_ALLOWED, "takes no value");
        check(&RequestBuf::delete("/a/level"), Code::METHOD_NOT_ALLOWED, "/a/level cannot be deleted");
        check(&RequestBuf::new(Code::FETCH, "/a/level"), Code::METHOD_NOT_ALLOWED, "GET, PUT, POST and DELETE");
        check(&RequestBuf::get("/a/level").with_accept(9999), Code::NOT_ACCEPTABLE, "no representation");
        let new_only = RequestBuf::put("/a/level", "1").with_option(OptionNumber::IF_NONE_MATCH, &[]);
        check(&new_only, Code::PRECONDITION_FAILED, "exists");
        let old = RequestBuf::put("/a/level", "1").with_option(OptionNumber::IF_MATCH, &[1]);
        check(&old, Code::PRECONDITION_FAILED, "has changed");
        let old = RequestBuf::delete("/a/level").with_option(OptionNumber::IF_MATCH, &[1]);
        check(&old, Code::PRECONDITION_FAILED, "has changed");
        let missing = RequestBuf::delete("/nothing").with_option(OptionNumber::IF_MATCH, &[]);
        check(&missing, Code::PRECONDITION_FAILED, "no such");
        for format in [content_format::TEXT, content_format::SENML_CBOR] {
            let etag = ask(&RequestBuf::get("/a/level").with_accept(format)).etag.expect("a tag");
            let right = RequestBuf::put("/a/level", "1").with_option(OptionNumber::IF_MATCH, &etag);
            check(&right, Code::METHOD_NOT_ALLOWED, "takes no value");
        }
        assert!(Catalog::handle(&store(), &RequestBuf::get("/b").view()).is_none());
    }

    #[test]
    fn an_empty_segment_in_front_makes_another_path_with_observers_of_its_own() {
        for path in ["//a/level", "/%2Fa/level", "///a/level"] {
            assert_eq!(ask(&RequestBuf::get(path)).code, Code::NOT_FOUND, "{path}");
            assert_eq!(Catalog::existence(&store(), &RequestBuf::get(path).view()), Existence::Absent, "{path}");
        }
        let store = LocalStore::new();
        let sampling = Sampling::OnDemand { max_age: Duration::from_secs(1) };
        let description = PropertyDescription::new("level", "level", Unit::NONE, sampling);
        let property = Property::measured(description, SteadySource, None, system_clock());
        store.insert(Arc::new(property)).expect("inserted");
        Catalog::handle_observers(&store, 0, "/level", 1);
        for count in [1, 0] {
            Catalog::handle_observers(&store, 0, "//level", count);
            assert!(store.handle_timeout(system_clock()()).is_some(), "it is sampled for its observer: {count}");
        }
    }

    /// Gives the same value each time, at once.
    struct SteadySource;

    impl Source for SteadySource {
        fn read(&self, completion: Completion) {
            completion(Ok(Value::Real(1.0)));
        }
    }

    #[test]
    fn what_never_waits_is_answered_by_the_receiver() {
        let level = store().find("a/level").expect("there");
        assert_eq!(ResourceHandler(level).class(), Class::Inline);
        assert_eq!(Catalog::class(&store()), Class::Pooled(ClassId::DEVICE));
    }
}
