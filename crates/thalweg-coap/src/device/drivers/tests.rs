use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_host::HostFiles;

use super::*;
use crate::device::tests::Folder;
use crate::device::{Description, DeviceError, Driver, Value};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

/// Checks what the channel of a device reads.
#[track_caller]
fn check(driver: &dyn Driver, device: &str, channel: &str, expect: Result<f64, &str>) {
    let devices = driver.find().expect("found");
    let description = devices.iter().find(|found| found.name == device).expect("the device");
    let index = description.channels.iter().position(|found| found.name == channel).expect("the channel");
    let got = driver.open(description).and_then(|mut device| device.read(index));
    match (got, expect) {
        (Ok(Value::Real(got)), Ok(expect)) => assert!((got - expect).abs() < 1e-9, "{device}/{channel}: {got}"),
        (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{part:?} not in {error}"),
        (got, expect) => panic!("{device}/{channel}: {got:?}, expected {expect:?}"),
    }
}

#[test]
fn thermal_zones_are_found_and_read_in_degrees() {
    let thermal = Thermal::at(fixture("thermal"));
    let names: Vec<String> = thermal.find().expect("found").into_iter().map(|found| found.title).collect();
    assert_eq!(names, ["x86_pkg_temp", "acpitz", "broken"]);
    check(&thermal, "thermal_zone0", "temperature", Ok(47.25));
    check(&thermal, "thermal_zone1", "temperature", Ok(-5.0));
    check(&thermal, "thermal_zone2", "temperature", Err("no temperature in millidegrees"));
}

#[test]
fn a_host_without_thermal_zones_has_none() {
    assert_eq!(Thermal::at("/nonexistent").find(), Ok(Vec::new()));
}

#[test]
fn a_zone_that_has_gone_is_absent() {
    let folder = Folder::new("zone");
    folder.write("thermal_zone0/temp", "40000\n");
    let thermal = Thermal::at(folder.path());
    let description = thermal.find().expect("found").remove(0);
    let mut device = thermal.open(&description).expect("opened");
    assert_eq!(device.read(0), Ok(Value::Real(40.0)));
    folder.remove("thermal_zone0/temp");
    assert!(matches!(device.read(0), Err(DeviceError::Absent(_))));
    assert!(matches!(thermal.open(&description), Err(DeviceError::Absent(_))));
}

#[test]
fn a_name_cannot_leave_the_directory_of_the_zones() {
    let folder = Folder::new("escape");
    folder.write("secret/temp", "1000\n");
    folder.write("zones/thermal_zone0/temp", "2000\n");
    let thermal = Thermal::at(folder.path().join("zones"));
    let description = Description { name: "../secret".to_owned(), title: String::new(), channels: Vec::new() };
    assert!(matches!(thermal.open(&description), Err(DeviceError::Absent(_))));
}

#[test]
fn the_host_and_the_process_are_read_from_proc() {
    let system = System::of(HostFiles::at(fixture("")));
    check(&system, "host", "load-1min", Ok(0.42));
    check(&system, "host", "load-15min", Ok(1.07));
    check(&system, "host", "uptime", Ok(350_735.47));
    check(&system, "host", "memory-available", Ok(6_000_000.0 * 1024.0));
    check(&system, "process", "memory", Ok(20_480.0 * 1024.0));
    check(&system, "process", "threads", Ok(7.0));
    check(&system, "process", "processor-time", Ok(3.5));
}

#[test]
fn quantities_that_the_kernel_does_not_tell_are_left_out() {
    let folder = Folder::new("proc");
    folder.write("proc/uptime", "5.5 1.0\n");
    let system = System::of(HostFiles::at(folder.path()));
    let found = system.find().expect("found");
    assert_eq!(found.len(), 1, "no process");
    assert_eq!(found[0].channels.len(), 1);
    check(&system, "host", "uptime", Ok(5.5));
    let mut device = system.open(&found[0]).expect("opened");
    folder.remove("proc/uptime");
    assert_eq!(device.read(0), Err(DeviceError::Absent("the kernel does not tell uptime".to_owned())));
}

#[test]
fn this_host_has_a_load_and_this_process_has_threads() {
    let system = System::default();
    let devices = system.find().expect("found");
    for description in &devices {
        let mut device = system.open(description).expect("opened");
        for index in 0..description.channels.len() {
            assert!(device.read(index).is_ok(), "{description:?}");
        }
    }
}

fn simulated(simulation: Simulation) -> (Simulated, Arc<AtomicU64>) {
    let nanos = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&nanos);
    let driver = Simulated::with_clock(simulation, move || Instant::from_nanos(clock.load(Ordering::Relaxed)));
    (driver, nanos)
}

fn readings(simulation: Simulation, device: usize, count: usize) -> Vec<Result<Value, DeviceError>> {
    let (driver, _) = simulated(simulation);
    let description = driver.find().expect("found").remove(device);
    let mut device = driver.open(&description).expect("opened");
    (0..count).map(|_| device.read(0)).collect()
}

#[test]
fn a_simulation_follows_from_its_seed() {
    let simulation = |seed| Simulation { seed, sensors: 2, failure: 0.3, ..Simulation::default() };
    assert_eq!(readings(simulation(7), 0, 50), readings(simulation(7), 0, 50));
    assert_ne!(readings(simulation(7), 0, 50), readings(simulation(8), 0, 50));
    assert_ne!(readings(simulation(7), 0, 50), readings(simulation(7), 1, 50), "each sensor has its own noise");
    let failures = readings(simulation(7), 0, 1000).iter().filter(|reading| reading.is_err()).count();
    assert!((250..350).contains(&failures), "{failures} of 1000 failed, 300 expected");
}

#[test]
fn a_simulated_temperature_swings_around_its_mean() {
    let period = Duration::from_secs(8);
    let (driver, nanos) = simulated(Simulation { period, ..Simulation::default() });
    let description = driver.find().expect("found").remove(0);
    let mut device = driver.open(&description).expect("opened");
    device.act(1, &Value::Real(100.0)).expect("the mean is set");
    assert_eq!(device.read(1), Ok(Value::Real(100.0)));
    for (seconds, expect) in [(0, 100.0), (2, 105.0), (4, 100.0), (6, 95.0), (8, 100.0)] {
        nanos.store(seconds * 1_000_000_000, Ordering::Relaxed);
        let Ok(Value::Real(got)) = device.read(0) else { panic!("no reading") };
        assert!((got - expect).abs() < 0.11, "after {seconds} s: {got}");
    }
    assert!(device.act(1, &Value::Real(f64::NAN)).is_err());
}
