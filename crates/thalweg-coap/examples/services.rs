//! Service management: an application that reads a resource of another thing, follows its changes and publishes what it
//! makes of it.
//!
//! `cargo run -p thalweg-coap --example services`

use std::sync::{Arc, mpsc};
use std::time::Duration;

use thalweg_coap::device::{Unit, Value};
use thalweg_coap::endpoint::Config;
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{Server, ServerConfig};
use thalweg_coap::resource::{LocalStore, system_clock};
use thalweg_coap::service::{CoapRemote, Services, Things};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Another thing, in this process for the sake of the example.
    let theirs = LocalStore::new();
    let routes = Routes::new().with_catalog(Arc::new(theirs.clone()));
    let server = Server::start(&ServerConfig::new(([127, 0, 0, 1], 0).into()), routes)?;
    let threads = server.scheduler().manager();
    let remote = Arc::new(CoapRemote::start(Config::default(), threads)?);
    let at_them = Things::new(theirs, Arc::clone(&remote) as _, 0, system_clock());
    let level = at_them.publish("level", "level", Unit::METRE, Duration::from_secs(60))?;
    level.push(Value::Real(1.0));

    let things = Things::new(LocalStore::new(), remote, 1 << 20, system_clock());
    let mut services = Services::new(things.clone(), Arc::clone(threads));
    let name = format!("coap://{}/level", server.address());
    let (sender, told) = mpsc::channel();
    services.start("alarm", move |things, stop| {
        let Ok(alarm) = things.publish("alarm", "switch", Unit::NONE, Duration::from_secs(60)) else { return };
        let Ok(observed) = things.observe(&name) else { return };
        while !stop.came() {
            let Ok(Some(state)) = observed.next(Duration::from_millis(100)) else { continue };
            let is_high = matches!(state.value(), Ok((Value::Real(level), _)) if level > 2.0);
            alarm.push(Value::Boolean(is_high));
            let _ = sender.send(is_high);
        }
    })?;
    println!("alarm: {}", told.recv_timeout(Duration::from_secs(10))?);
    level.push(Value::Real(2.5));
    println!("alarm: {}", told.recv_timeout(Duration::from_secs(10))?);
    println!("the alarm as a resource: {}", things.value("/alarm")?.0);
    Ok(())
}
