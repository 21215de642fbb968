//! Which handler a path leads to, and what `/.well-known/core` says about them (RFC 6690).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::guard::{Guard, GuardRules};
use super::handler::{Catalog, CatalogAttachment, Class, ClassId, Existence, Handler, Terms};
use super::server::Notifier;
use super::terms::Conditions;
use super::turns::Turns;
use crate::identity::{AccessRules, Caller, unescaped};
use crate::link_format::{self, WebLink};
use crate::message::{CoapRequest, Code, Response, content_format};

/// Handlers by their paths.
#[derive(Default)]
pub struct Routes {
    routes: Vec<Route>,
    /// Hashes of the paths with their routes, ascending.
    by_hash: Vec<(u64, usize)>,
    catalog: Option<Arc<dyn Catalog>>,
    /// Answers requests that name another server.
    proxy: Option<Arc<dyn Handler>>,
    guard: Arc<Guard>,
    turns: Turns,
}

struct Route {
    path: String,
    link: Option<WebLink>,
    handler: Arc<dyn Handler>,
    class: Class,
    terms: Terms,
    slowness: Slowness,
}

/// The target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To the handler with this number.
    Route(usize),
    /// To the catalog.
    Catalog,
    /// To the proxy.
    Proxy,
    /// To the list of links.
    Core,
    /// Nowhere.
    Nothing,
}

impl Routes {
    /// No handlers yet; `/.well-known/core` is there.
    pub fn new() -> Routes {
        Routes::default()
    }

    /// Adds a handler for `path`, such as `/sensors/temperature`, and shows it in `/.well-known/core` without attributes.
    /// A second one for the same path replaces the first.
    pub fn add(self, path: &str, handler: impl Handler + 'static) -> Routes {
        let target = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        self.add_link(WebLink::new(target), Arc::new(handler))
    }

    /// Adds a handler for the path that `link` leads to, and shows the link in `/.well-known/core`.
    pub fn add_link(mut self, link: WebLink, handler: Arc<dyn Handler>) -> Routes {
        let path = link.target.clone();
        self.insert(path, Some(link), handler);
        self
    }

    /// Adds a handler that `/.well-known/core` does not mention.
    pub fn add_hidden(mut self, path: &str, handler: impl Handler + 'static) -> Routes {
        self.insert(path.to_owned(), None, Arc::new(handler));
        self
    }

    /// Asks `catalog` for all other paths.
    pub fn with_catalog(mut self, catalog: Arc<dyn Catalog>) -> Routes {
        self.catalog = Some(catalog);
        self
    }

    /// Lets `proxy` answer requests that name another server, whatever their path; without one they are answered 5.05.
    pub fn with_proxy(mut self, proxy: Arc<dyn Handler>) -> Routes {
        self.proxy = Some(proxy);
        self
    }

    /// Takes the rules that others ask as well.
    pub(crate) fn with_guard(self, guard: Arc<Guard>) -> Routes {
        Routes { guard, ..self }
    }

    /// Whether there is a proxy.
    pub(super) fn has_proxy(&self) -> bool {
        self.proxy.is_some()
    }

    /// Whether some of what it leads to may pass requests on, besides the proxy.
    pub(super) fn may_forward(&self) -> bool {
        self.catalog.is_some() || self.routes.iter().any(|route| route.terms.forwards)
    }

    /// Whether `target` passes a request on to another server.
    pub(super) fn forwards(&self, target: Target, request: &CoapRequest<'_>) -> bool {
        target == Target::Proxy || self.terms(target, request).forwards
    }

    /// Lets only protected requests (OSCORE, RFC 8613) reach `path`, such as `/locks`, and everything below it, whether a
    /// handler or the catalog answers there; `/` for all. Other requests get 4.01, and `/.well-known/core` says `osc`. The path is
    /// written as in a URI, `%25` for a `%`; one with a `%` that begins no escape is taken as it is.
    pub fn protect(self, path: &str) -> Routes {
        let mut rules = GuardRules::clone(&self.guard.rules());
        let plain = unescaped(path).unwrap_or_else(|| path.to_owned());
        rules.protected.push(plain.trim_matches('/').to_owned());
        self.set_guard(rules);
        self
    }

    /// Lets only the clients that `rules` allow reach resources.
    pub fn with_access(self, rules: AccessRules) -> Routes {
        self.set_guard(GuardRules { access: rules, ..GuardRules::clone(&self.guard.rules()) });
        self
    }

    /// Replaces what requests have to prove; those that arrive from now on are under it.
    pub fn set_guard(&self, rules: GuardRules) {
        self.guard.set(rules);
    }

    /// The answer to a request that is not protected as it has to be, or that the access rules do not allow.
    #[inline]
    pub fn refuse(&self, request: &CoapRequest<'_>, caller: &Caller) -> Option<Response> {
        self.guard.refuse(request, caller)
    }

    /// Whether an unprotected request has to be refused. Allocates nothing.
    pub fn needs_protection(&self, request: &CoapRequest<'_>) -> bool {
        self.guard.needs_protection(request)
    }

    fn insert(&mut self, path: String, link: Option<WebLink>, handler: Arc<dyn Handler>) {
        let path = format!("/{}", path.trim_matches('/'));
        let hash = hash_of(path.split('/').filter(|segment| !segment.is_empty()).map(str::as_bytes));
        let place = self.with_hash(hash).find(|route| self.routes[*route].path == path);
        let (class, terms) = (handler.class(), handler.terms());
        let route = Route { path, link, handler, class, terms, slowness: Slowness::default() };
        match place {
            Some(place) => self.routes[place] = route,
            None => {
                let place = self.by_hash.partition_point(|(other, _)| *other < hash);
                self.by_hash.insert(place, (hash, self.routes.len()));
                self.routes.push(route);
            }
        }
    }

    fn with_hash(&self, hash: u64) -> impl Iterator<Item = usize> {
        let first = self.by_hash.partition_point(|(other, _)| *other < hash);
        self.by_hash[first..].iter().take_while(move |(other, _)| *other == hash).map(|(_, route)| *route)
    }

    /// The target of a request. Allocates nothing.
    pub fn find(&self, request: &CoapRequest<'_>) -> Target {
        if self.proxy.is_some() && request.is_for_proxy() {
            return Target::Proxy;
        }
        let hash = hash_of(request.path_bytes());
        let found = self.with_hash(hash).find(|route| request.is_path(&self.routes[*route].path));
        match found {
            Some(route) => Target::Route(route),
            None if request.is_path(CORE_PATH) => Target::Core,
            None if self.catalog.is_some() => Target::Catalog,
            None => Target::Nothing,
        }
    }

    /// The class of the handler of `target`.
    pub fn class(&self, target: Target) -> Class {
        match target {
            Target::Route(route) if self.routes[route].slowness.is_demoted() => Class::Pooled(ClassId::BLOCKING),
            Target::Route(route) => self.routes[route].class,
            Target::Catalog => self.catalog.as_ref().map_or(Class::Inline, |catalog| catalog.class()),
            Target::Proxy => self.proxy.as_ref().map_or(Class::Inline, |proxy| proxy.class()),
            // A list takes some microseconds a link: that of 10,000 resources would hold up all that the receiver has to do.
            Target::Core if self.catalog.is_some() || self.routes.len() > INLINE_LINKS_MAX => {
                Class::Pooled(ClassId::BLOCKING)
            }
            Target::Core | Target::Nothing => Class::Inline,
        }
    }

    /// What `target` agrees to.
    fn terms(&self, target: Target, request: &CoapRequest<'_>) -> Terms {
        match target {
            Target::Route(route) => self.routes[route].terms,
            Target::Catalog => self.catalog.as_ref().map_or(Terms::default(), |catalog| catalog.terms(request)),
            // What exists is what groups are asked for.
            Target::Core => Terms { for_groups: true, ..Terms::default() },
            Target::Proxy | Target::Nothing => Terms::default(),
        }
    }

    /// Whether a request to a group of hosts may reach `target`.
    pub fn is_for_groups(&self, target: Target, request: &CoapRequest<'_>) -> bool {
        self.terms(target, request).for_groups
    }

    /// The answer of what `target` is, or why the request does not reach it.
    pub fn handle(&self, target: Target, request: &CoapRequest<'_>) -> Response {
        let answer = || {
            match target {
                Target::Nothing => return not_found(),
                // Conditions are those of the server that it asks.
                Target::Proxy => return self.ask(target, request),
                Target::Route(_) | Target::Catalog | Target::Core => (),
            }
            let conditions = Conditions::read(request);
            if request.code.is_safe() && conditions.are_none() {
                return self.ask(target, request);
            }
            let terms = self.terms(target, request);
            if terms.forwards {
                return self.ask(target, request);
            }
            let is_in_turn = terms.conditional && !request.code.is_safe();
            let _turn = match is_in_turn.then(|| self.turns.take(hash_of(request.path_bytes()))) {
                Some(None) => return crowded(),
                turn => turn,
            };
            let refusal = conditions.refusal(request, &terms, || self.existence(target, request));
            refusal.unwrap_or_else(|| conditions.acceptable(request, self.ask(target, request)))
        };
        let panicked = |_| Response::error(Code::INTERNAL_SERVER_ERROR, "the handler failed");
        catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(panicked)
    }

    /// Whether the target exists. A client that may not read it is told no tags: which one is right tells a state that can be
    /// guessed.
    fn existence(&self, target: Target, request: &CoapRequest<'_>) -> Existence {
        let existence = match target {
            Target::Route(route) => self.routes[route].handler.existence(request),
            Target::Catalog => self.catalog.as_ref().map_or(Existence::Absent, |catalog| catalog.existence(request)),
            Target::Proxy | Target::Core | Target::Nothing => Existence::Absent,
        };
        let reading = CoapRequest { code: Code::GET, ..*request };
        let may_read = request.caller.is_none_or(|caller| self.refuse(&reading, caller).is_none());
        match existence {
            Existence::Present(_) if !may_read => Existence::Present(Vec::new()),
            existence => existence,
        }
    }

    fn ask(&self, target: Target, request: &CoapRequest<'_>) -> Response {
        match target {
            Target::Route(route) => self.routes[route].handler.handle(request),
            Target::Catalog => {
                self.catalog.as_ref().and_then(|catalog| catalog.handle(request)).unwrap_or_else(not_found)
            }
            Target::Proxy => self.proxy.as_ref().map_or_else(not_found, |proxy| proxy.handle(request)),
            Target::Core => self.core(request),
            Target::Nothing => not_found(),
        }
    }

    /// Tells the catalog that a resource is observed by way of the loop `home`, or not any more.
    pub fn handle_observers(&self, home: usize, path: &str, count: usize) {
        if let Some(catalog) = &self.catalog {
            catalog.handle_observers(home, path, count);
        }
    }

    /// Has the catalog tell its changes.
    pub(super) fn attach(&self, notifier: Notifier) -> Option<CatalogAttachment> {
        self.catalog.as_ref().and_then(|catalog| catalog.attach(notifier))
    }

    /// Takes into account that the handler of `target` ran inline for longer than it may; true when that moves it to the
    /// pool from now on.
    pub fn handle_breach(&self, target: Target) -> bool {
        let Target::Route(route) = target else { return false };
        self.routes[route].slowness.handle_breach()
    }

    /// Takes into account that it kept to its time.
    pub fn handle_kept(&self, target: Target) {
        if let Target::Route(route) = target {
            self.routes[route].slowness.handle_kept();
        }
    }

    /// Paths of the handlers that were moved to the pool.
    pub fn demoted(&self) -> Vec<String> {
        self.routes.iter().filter(|route| route.slowness.is_demoted()).map(|route| route.path.clone()).collect()
    }

    /// All links that pass the arguments of the query (RFC 6690 §4.1).
    fn core(&self, request: &CoapRequest<'_>) -> Response {
        if request.code != Code::GET {
            return Response::new(Code::METHOD_NOT_ALLOWED);
        }
        if request.queries().count() > FILTERS_MAX {
            return Response::error(Code::BAD_REQUEST, format!("at most {FILTERS_MAX} filters are understood"));
        }
        let mut links: Vec<WebLink> = self.routes.iter().filter_map(|route| route.link.clone()).collect();
        links.extend(self.catalog.iter().flat_map(|catalog| catalog.links()));
        for link in &mut links {
            if self.guard.protects_path(&link.target) {
                link.attributes.push(("osc".to_owned(), None));
            }
        }
        let passes = |link: &&WebLink| request.queries().all(|argument| link.matches(argument));
        Response::content(link_format::encode(links.iter().filter(passes)), content_format::LINK_FORMAT)
    }
}

/// Number of recent calls in which a handler took too long.
#[derive(Debug, Default)]
struct Slowness(AtomicU32);

impl Slowness {
    fn is_demoted(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= BREACHES_MAX
    }

    fn handle_breach(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) + 1 == BREACHES_MAX
    }

    fn handle_kept(&self) {
        let less = |breaches: u32| (breaches > 0 && breaches < BREACHES_MAX).then(|| breaches - 1);
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

#[cold]
fn crowded() -> Response {
    Response::error(Code::SERVICE_UNAVAILABLE, "too many changes of the resource wait already").with_max_age(1)
}

fn not_found() -> Response {
    Response::error(Code::NOT_FOUND, "no such resource")
}

/// FNV-1a over the segments, each with its end: short paths are hashed faster than a keyed hash begins, and an attacker
/// cannot add routes.
fn hash_of<'a>(segments: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for segment in segments {
        for byte in segment.iter().copied().chain([b'/']) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

const CORE_PATH: &str = "/.well-known/core";
/// Links that the receiver lists by itself, within the 50 µs that a handler has there.
const INLINE_LINKS_MAX: usize = 32;
/// Filters of one request. RFC 6690 §4.1 knows one; a message has room for hundreds, each of which is compared with all links.
const FILTERS_MAX: usize = 16;
/// Breaches, less the calls between them that kept to their time, after which a handler is moved. The system may take the
/// processor away from any handler now and then.
const BREACHES_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interaction::handler::Function;
    use crate::message::{ETag, OptionNumber, RequestBuf};
    use std::sync::Mutex;

    fn saying(text: &'static str) -> Function<impl Fn(&CoapRequest<'_>) -> Response + Send + Sync> {
        Function::inline(move |_| Response::content(text, content_format::TEXT))
    }

    fn answer(routes: &Routes, request: &RequestBuf) -> String {
        let view = request.view();
        let response = routes.handle(routes.find(&view), &view);
        format!("{:?} {}", response.code, String::from_utf8_lossy(&response.payload))
    }

    #[track_caller]
    fn check(routes: &Routes, path: &str, expect: &str) {
        let said = answer(routes, &RequestBuf::get(path));
        assert!(said.ends_with(expect), "{path}: {said}");
    }

    #[test]
    fn a_path_leads_to_its_handler_whole_and_only() {
        let routes = Routes::new().add("/a", saying("a")).add("/a/b", saying("b")).add("ab", saying("c"));
        check(&routes, "/a", " a");
        check(&routes, "/a/b", " b");
        check(&routes, "/ab", " c");
        for path in ["/", "/a/b/c", "/b", "/a%2Fb"] {
            check(&routes, path, "no such resource");
        }
        check(&routes.add("a/", saying("d")), "/a", " d");
    }

    #[test]
    fn the_core_lists_links_that_pass_its_query_and_no_hidden_ones() {
        let light = WebLink::new("/light").with("rt", "lamp");
        let routes = Routes::new().add("/a", saying("a")).add_link(light, Arc::new(saying("l")));
        let routes = routes.add_hidden("/secret", saying("s"));
        check(&routes, "/.well-known/core", " </a>,</light>;rt=\"lamp\"");
        check(&routes, "/.well-known/core?rt=lamp", " </light>;rt=\"lamp\"");
        check(&routes, "/secret", " s");
        let put = answer(&routes, &RequestBuf::put("/.well-known/core", ""));
        assert!(put.contains("4.05"), "{put}");
        let filters = |count: usize| format!("/.well-known/core?{}", vec!["href=/l*"; count].join("&"));
        check(&routes, &filters(16), " </light>;rt=\"lamp\"");
        let said = answer(&routes, &RequestBuf::get(&filters(17)));
        assert!(said.starts_with("4.00"), "{said}");
    }

    #[test]
    fn a_long_list_of_links_is_no_work_for_the_receiver() {
        let with =
            |count: usize| (0..count).fold(Routes::new(), |routes, at| routes.add(&format!("/{at}"), saying("")));
        let class = |routes: Routes| routes.class(routes.find(&RequestBuf::get(CORE_PATH).view()));
        assert_eq!(class(with(32)), Class::Inline);
        assert_eq!(class(with(33)), Class::Pooled(ClassId::BLOCKING));
    }

    #[test]
    fn what_needs_protection_says_so_and_is_not_reached_by_other_spellings() {
        let routes =
            Routes::new().add("/a", saying("a")).add("/a/b", saying("b")).add("/ab", saying("c")).protect("/a");
        let needs = |path: &str| routes.needs_protection(&RequestBuf::get(path).view());
        for path in ["/a", "/a/b", "/a/b/c", "/a%2Fb", "//a", "/a?x", "/%2Fa"] {
            assert!(needs(path), "{path}");
        }
        for path in ["/", "/ab", "/b/a", "/.well-known/core"] {
            assert!(!needs(path), "{path}");
        }
        check(&routes, "/.well-known/core", " </a>;osc,</a/b>;osc,</ab>");
        check(&routes, "/.well-known/core?osc", " </a>;osc,</a/b>;osc");
        assert!(Routes::new().protect("/").needs_protection(&RequestBuf::get("/x").view()));
        assert!(!Routes::new().needs_protection(&RequestBuf::get("/x").view()));
    }

    struct Shelf;

    impl Catalog for Shelf {
        fn class(&self) -> Class {
            Class::Pooled(ClassId::DEVICE)
        }

        fn handle(&self, request: &CoapRequest<'_>) -> Option<Response> {
            request.is_path("/book").then(|| Response::content("read", content_format::TEXT))
        }

        fn links(&self) -> Vec<WebLink> {
            vec![WebLink::new("/book")]
        }
    }

    #[test]
    fn other_paths_are_asked_of_the_catalog() {
        let routes = Routes::new().add("/a", saying("a")).with_catalog(Arc::new(Shelf));
        check(&routes, "/book", " read");
        check(&routes, "/pen", "no such resource");
        check(&routes, "/.well-known/core", " </a>,</book>");
        let core = RequestBuf::get("/.well-known/core");
        assert_eq!(routes.class(routes.find(&core.view())), Class::Pooled(ClassId::BLOCKING), "shelves may be long");
        assert_eq!(routes.class(routes.find(&RequestBuf::get("/pen").view())), Class::Pooled(ClassId::DEVICE));
    }

    #[test]
    fn conditions_are_refused_before_a_handler_that_cannot_tell_what_exists() {
        let routes = Routes::new().add("/a", Function::inline(|_| panic!("it must not be asked")));
        for (number, name) in [(OptionNumber::IF_MATCH, "If-Match"), (OptionNumber::IF_NONE_MATCH, "If-None-Match")] {
            for code in [Code::GET, Code::PUT, Code::POST, Code::DELETE, Code::PATCH, Code::IPATCH] {
                let said = answer(&routes, &RequestBuf::new(code, "/a").with_option(number, &[]));
                assert!(said.starts_with("4.02") && said.contains(name), "{said}");
            }
            let said = answer(&routes, &RequestBuf::get("/.well-known/core").with_option(number, &[]));
            assert!(said.starts_with("4.02"), "{said}");
            let said = answer(&routes, &RequestBuf::put("/nothing", "").with_option(number, &[]));
            assert!(said.starts_with("4.04"), "{said}");
        }
    }

    #[test]
    fn formats_are_compared_with_the_terms_and_with_the_answer() {
        let terms = Terms { produces: &[0, 50], consumes: &[0], ..Terms::default() };
        let routes = Routes::new().add("/a", saying("a").with_terms(terms)).add("/b", saying("b"));
        let check = |request: RequestBuf, expect: &str| {
            let said = answer(&routes, &request);
            assert!(said.starts_with(expect), "{said}");
        };
        check(RequestBuf::get("/a").with_accept(60), "4.06");
        check(RequestBuf::post("/a", "x").with_accept(60), "4.06");
        check(RequestBuf::get("/a").with_accept(50), "4.06"); // It says that it can and does not.
        check(RequestBuf::get("/a").with_accept(0), "2.05");
        check(RequestBuf::get("/b").with_accept(60), "4.06");
        check(RequestBuf::get("/.well-known/core").with_accept(0), "4.06");
        check(RequestBuf::get("/.well-known/core").with_accept(40), "2.05");
        check(RequestBuf::post("/a", "x").with_content_format(9999), "4.15");
        check(RequestBuf::post("/a", "x").with_content_format(0), "2.05");
        check(RequestBuf::post("/b", "x").with_content_format(9999), "2.05");
    }

    /// A number that each POST raises by one, slowly.
    #[derive(Default)]
    struct Counter(Mutex<u64>);

    impl Handler for Counter {
        fn class(&self) -> Class {
            Class::Pooled(ClassId::BLOCKING)
        }

        fn terms(&self) -> Terms {
            Terms { conditional: true, ..Terms::default() }
        }

        fn existence(&self, _: &CoapRequest<'_>) -> Existence {
            match *self.0.lock().unwrap() {
                0 => Existence::Absent,
                number => Existence::Present(vec![ETag::from_u64(number)]),
            }
        }

        fn handle(&self, _: &CoapRequest<'_>) -> Response {
            let before = *self.0.lock().unwrap();
            std::thread::yield_now();
            *self.0.lock().unwrap() = before + 1;
            Response::new(Code::CHANGED)
        }
    }

    #[test]
    fn a_condition_still_holds_when_the_handler_runs() {
        let counter = Arc::new(Counter::default());
        let routes = Routes::new().add_link(WebLink::new("/n"), Arc::clone(&counter) as Arc<dyn Handler>);
        let first = RequestBuf::post("/n", "").with_option(OptionNumber::IF_NONE_MATCH, &[]);
        assert!(
            answer(&routes, &RequestBuf::post("/n", "").with_option(OptionNumber::IF_MATCH, &[])).starts_with("4.12")
        );
        assert!(answer(&routes, &first).starts_with("2.04"));
        assert!(answer(&routes, &first).starts_with("4.12"));
        let changed = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 1..200_u64 {
                        let tag = ETag::from_u64(number);
                        let request = RequestBuf::post("/n", "").with_option(OptionNumber::IF_MATCH, &tag);
                        let said = answer(&routes, &request);
                        assert!(said.starts_with("2.04") || said.starts_with("4.12"), "{said}");
                        changed.fetch_add(u32::from(said.starts_with("2.04")), Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(
            *counter.0.lock().unwrap(),
            1 + u64::from(changed.load(Ordering::Relaxed)),
            "each tag was good once"
        );
    }

    #[test]
    fn a_handler_that_panics_answers_internal_server_error() {
        let routes = Routes::new().add("/a", Function::inline(|_| panic!("as the test wants")));
        let said = answer(&routes, &RequestBuf::get("/a"));
        assert!(said.contains("5.00"), "{said}");
    }

    #[test]
    fn who_takes_too_long_again_and_again_is_moved_and_who_does_now_and_then_is_not() {
        let routes = Routes::new().add("/a", saying("a"));
        let target = routes.find(&RequestBuf::get("/a").view());
        for _ in 0..20 {
            assert!(!routes.handle_breach(target));
            routes.handle_kept(target);
        }
        assert_eq!(routes.class(target), Class::Inline);
        let moved: Vec<bool> = (0..6).map(|_| routes.handle_breach(target)).collect();
        assert_eq!(moved, [false, false, false, false, true, false]);
        assert_eq!((routes.class(target), routes.demoted()), (Class::Pooled(ClassId::BLOCKING), vec!["/a".to_owned()]));
        routes.handle_kept(target);
        assert_eq!(routes.class(target), Class::Pooled(ClassId::BLOCKING));
    }
}
