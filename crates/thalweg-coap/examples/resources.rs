//! Resource management: a sensor that is read as often as its value and those who ask need, and a value that an
//! application publishes, both in one store.
//!
//! `cargo run -p thalweg-coap --example resources`

use std::sync::Arc;
use std::time::Duration;

use thalweg_coap::device::drivers::{Kit, KitModel};
use thalweg_coap::device::{DevicePool, Finder, Linker, Unit, Value};
use thalweg_coap::message::content_format;
use thalweg_coap::resource::{
    AdaptivePolicy, ChannelPolicy, Get, LocalStore, Property, Sampler, Sampling, add_devices, system_clock,
};
use thalweg_coap::scheduler::controller::ControlLaw;
use thalweg_coap::scheduler::{Scheduler, SchedulerConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scheduler = Scheduler::start(SchedulerConfig::default())?;
    let linker = Linker::new(DevicePool::start(&scheduler, ControlLaw::Vta)?);
    let store = LocalStore::new();
    let hall = Kit::new(1).with("hall", KitModel::named("temphumi").ok_or("no such model")?);
    let (period_min, period_max) = (Duration::from_millis(10), Duration::from_secs(5));
    let sampling = Sampling::Adaptive(AdaptivePolicy { error: 0.5, period_min, period_max });
    let policy = ChannelPolicy { sampling, ..ChannelPolicy::default() };
    let failures = add_devices(&store, &Finder::new().with(hall).find(period_max), &linker, &policy, &system_clock());
    assert!(failures.is_empty(), "{failures:?}");
    let _sampler = Sampler::start(store.clone(), system_clock(), scheduler.manager())?;

    let news = Property::pushed("news", "text", Unit::NONE, Duration::from_secs(60), system_clock());
    store.insert(Arc::new(news.clone()))?;
    news.push(Value::Text("the door is open".to_owned()));

    let path = "sensors/hall/temperature";
    let watch = store.observe(path, move || println!("/{path} has changed"))?;
    std::thread::sleep(Duration::from_secs(2));
    drop(watch);
    for path in [path, "news"] {
        let reading = store.find(path)?.get(&Get { accept: Some(content_format::SENML_JSON), queries: &[] })?;
        println!("{}, good for {:?}", String::from_utf8_lossy(&reading.payload), reading.max_age);
    }
    for (path, report) in store.sensing() {
        let (reads, fixed) = (report.reads, report.reads_at_fixed_period);
        println!("/{path}: {reads} readings instead of {fixed}, never more than {:.3} apart", report.error_max);
    }
    Ok(())
}
