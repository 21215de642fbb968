//! Device management: find devices, link them, read one and drive one.
//!
//! `cargo run -p thalweg-coap --example devices`

use std::time::Duration;

use thalweg_coap::device::drivers::{Kit, System};
use thalweg_coap::device::{Command, DevicePool, Finder, Linker, Value};
use thalweg_coap::scheduler::controller::ControlLaw;
use thalweg_coap::scheduler::{Scheduler, SchedulerConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let second = Duration::from_secs(1);
    let scheduler = Scheduler::start(SchedulerConfig::default())?;
    let linker = Linker::new(DevicePool::start(&scheduler, ControlLaw::Vta)?);
    let found = Finder::new().with(System::default()).with(Kit::new(1).with_all()).find(second);
    for device in &found.devices {
        let handle = linker.link(device)?;
        for (at, channel) in
            device.description.channels.iter().enumerate().filter(|(_, channel)| channel.access.reads())
        {
            let value = handle.run(at, Command::Read, second)?;
            let text: String = value.to_string().chars().take(20).collect();
            println!("{}/{} = {text} {}", device.description.name, channel.name, channel.unit.symbol());
        }
    }
    let led = found.devices.iter().find(|device| device.description.name == "led").ok_or("no led")?;
    let led = linker.link(led)?;
    led.run(0, Command::Act(Value::Boolean(true)), second)?;
    println!("the led is on: {}", led.run(0, Command::Read, second)?);
    Ok(())
}
