//! The end of a registration at a directory that says nothing.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use super::*;
use crate::resource::{LocalStore, system_clock};
use crate::scheduler::priority::Priorities;
use crate::scheduler::thread_pool::ThreadPoolManager;
use crate::service::{Remote, RemoteObservation, ResponseCompletion, ResponseListener, Services, Things};

/// The way to a directory that never answers.
struct Silence {
    asked: mpsc::Sender<()>,
    /// One that is dropped says that no answer will come.
    owed: Mutex<Vec<ResponseCompletion>>,
}

struct Unobserved;

impl RemoteObservation for Unobserved {}

impl Remote for Silence {
    fn request(&self, _thing: &str, _request: RequestBuf, completion: ResponseCompletion) {
        self.owed.lock().expect("a lock").push(completion);
        // The test listens to the first one only.
        let _ = self.asked.send(());
    }

    fn observe(&self, _thing: &str, _request: RequestBuf, _listener: ResponseListener) -> Box<dyn RemoteObservation> {
        Box::new(Unobserved)
    }
}

#[test]
fn a_silent_directory_does_not_hold_up_the_end_of_a_registration() {
    let (asked, is_asked) = mpsc::channel();
    let remote: Arc<dyn Remote> = Arc::new(Silence { asked, owed: Mutex::default() });
    let things = Things::new(LocalStore::new(), Arc::clone(&remote), 1000, system_clock());
    let mut services = Services::new(things, Arc::new(ThreadPoolManager::new(4, Priorities::default())));
    let plan = RegistrationPlan {
        directory: "directory:5683".to_owned(),
        endpoint: "a".to_owned(),
        sector: String::new(),
        base: Some("coap://h".to_owned()),
        lifetime: Duration::from_secs(60),
    };
    let registration = Registration::new(plan, remote);
    services.start("register", move |things, stop| registration.run(things, stop, &|_| ())).expect("started");
    is_asked.recv_timeout(PATIENCE).expect("it registers");
    let start = std::time::Instant::now();
    assert!(services.stop("register"));
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
}

/// Longer than a second takes on a loaded machine, and far below the 93 s that a request may take.
const PATIENCE: Duration = Duration::from_secs(30);
