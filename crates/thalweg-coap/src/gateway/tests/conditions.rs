//! Conditional requests to what a gateway serves.

use std::sync::Mutex;

use super::*;
use crate::gateway::mirror::Mirror;
use crate::interaction::routes::Routes;
use crate::message::{ETag, Response};
use crate::resource::ResourceError;
use crate::service::{RemoteObservation, ResponseCompletion, ResponseListener};

/// Another thing that tells its state when it is asked, and to an observer once.
struct Lamp(Mutex<String>);

struct Registered;

impl RemoteObservation for Registered {}

impl Lamp {
    fn state(&self) -> Response {
        Response::content(self.0.lock().expect("a lock").clone(), content_format::TEXT).with_max_age(3600)
    }
}

impl Remote for Lamp {
    fn request(&self, _thing: &str, request: RequestBuf, completion: ResponseCompletion) {
        let view = request.view();
        let response = match view.code {
            Code::GET => self.state(),
            _ => {
                *self.0.lock().expect("a lock") = String::from_utf8_lossy(view.payload).into_owned();
                Response::new(Code::CHANGED)
            }
        };
        completion(Ok(response));
    }

    fn observe(&self, _thing: &str, _: RequestBuf, mut listener: ResponseListener) -> Box<dyn RemoteObservation> {
        let told: Result<Response, ResourceError> = Ok(self.state());
        listener(told);
        Box::new(Registered)
    }
}

/// A gateway's routes with a lamp of another thing at `/lamp`, a directory, and these rules.
struct World {
    routes: Routes,
    lamp: Arc<Lamp>,
    catalog: Arc<GatewayCatalog>,
}

impl World {
    fn new(access: &[&str]) -> World {
        let lamp = Arc::new(Lamp(Mutex::new("off".to_owned())));
        let remote = Arc::clone(&lamp) as Arc<dyn Remote>;
        let things = Things::new(LocalStore::new(), remote, 10_000, system_clock());
        let name = RemoteName { thing: "lamp:5683".to_owned(), path: "light".to_owned() };
        let store = LocalStore::new();
        let mirror = Mirror::start("lamp".to_owned(), name, &things, system_clock());
        store.insert(Arc::new(mirror)).expect("a place");
        let guard = Arc::new(Guard::default());
        let access = AccessRules::new(access.iter().map(|rule| rule.parse().expect("a rule")));
        guard.set(GuardRules { access, ..GuardRules::default() });
        let catalog = Arc::new(GatewayCatalog::new(store, Arc::clone(&guard)));
        catalog.set_directory(true);
        let routes = Routes::new().with_guard(guard).with_catalog(Arc::clone(&catalog) as _);
        World { routes, lamp, catalog }
    }

    fn ask(&self, request: &RequestBuf, address: &str) -> Response {
        let (view, caller) = (request.view(), caller(address));
        self.routes.handle(self.routes.find(&view), &view.of(&caller))
    }

    fn tag(&self) -> ETag {
        self.ask(&RequestBuf::get("/lamp"), "192.0.2.1").etag.expect("a tag")
    }

    #[track_caller]
    fn check(&self, request: &RequestBuf, address: &str, expect: Code, state: &str) {
        let response = self.ask(request, address);
        let said = String::from_utf8_lossy(&response.payload).into_owned();
        assert_eq!((response.code, &**self.lamp.0.lock().expect("a lock")), (expect, state), "{said}");
    }
}

fn put_if(tag: &[u8], state: &str) -> RequestBuf {
    RequestBuf::put("/lamp", state.to_owned()).with_option(OptionNumber::IF_MATCH, tag)
}

const ONE: &str = "192.0.2.1";
const OTHER: &str = "192.0.2.2";

#[test]
fn a_change_at_another_thing_needs_the_tag_of_its_latest_state() {
    let world = World::new(&[]);
    world.check(&put_if(&[1, 2, 3], "on"), ONE, Code::PRECONDITION_FAILED, "off");
    let tag = world.tag();
    let new_only = RequestBuf::put("/lamp", "on").with_option(OptionNumber::IF_NONE_MATCH, &[]);
    world.check(&new_only, ONE, Code::PRECONDITION_FAILED, "off");
    world.check(&put_if(&tag, "on"), ONE, Code::CHANGED, "on");
    // The thing has not told anew yet.
    world.check(&put_if(&tag, "dim"), OTHER, Code::PRECONDITION_FAILED, "on");
    assert_ne!(world.tag(), tag);
    world.check(&put_if(&world.tag(), "dim"), OTHER, Code::CHANGED, "dim");
    world.check(&put_if(&[], "off"), OTHER, Code::CHANGED, "off");
    let missing = RequestBuf::put("/nothing", "x").with_option(OptionNumber::IF_MATCH, &[]);
    world.check(&missing, ONE, Code::PRECONDITION_FAILED, "off");
}

#[test]
fn who_may_not_read_a_state_cannot_guess_it_by_its_tag() {
    let world = World::new(&["/lamp get,put net:192.0.2.1/32", "/lamp put net:192.0.2.2/32"]);
    let tag = world.tag();
    world.check(&put_if(&tag, "on"), OTHER, Code::PRECONDITION_FAILED, "off");
    world.check(&put_if(&[], "on"), OTHER, Code::CHANGED, "on");
    world.check(&put_if(&world.tag(), "off"), ONE, Code::CHANGED, "off");
}

#[test]
fn what_is_no_resource_of_the_store_evaluates_no_conditions_here() {
    let world = World::new(&[]);
    let register = RequestBuf::post("/rd?ep=a&base=coap://h", "").with_option(OptionNumber::IF_NONE_MATCH, &[]);
    world.check(&register, ONE, Code::BAD_OPTION, "off");
    let terms = |path: &str| world.catalog.terms(&RequestBuf::get(path).view());
    assert_eq!((terms("/rd").conditional, terms("/lamp").conditional), (false, true));
}
