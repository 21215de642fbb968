use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::*;
use crate::scheduler::admission::Patience;
use crate::scheduler::controller::ControlLaw;
use crate::scheduler::{PoolConfig, Scheduler, SchedulerConfig};

/// A directory of this test, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("thalweg-coap-{name}-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("written");
    }

    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.0.join(name)).expect("removed");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A driver whose only device does what the test says: each command waits for an outcome from the test.
pub struct Scripted {
    /// How often the device was opened.
    pub opened: Arc<AtomicUsize>,
    /// How often the device was told to do something.
    pub commands: Arc<AtomicUsize>,
    script: Arc<Mutex<Receiver<Step>>>,
    device_name: String,
}

/// What the device does next.
pub enum Step {
    Give(Result<Value, DeviceError>),
    Panic,
}

/// Long enough for any machine; a test that waits so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// For what never comes.
pub const SHORT: Duration = Duration::from_millis(1);

/// A linker whose threads live as long as the test's process.
pub fn linker() -> Linker {
    static SCHEDULER: OnceLock<(Scheduler, DevicePool)> = OnceLock::new();
    let (_, pool) = SCHEDULER.get_or_init(|| {
        let scheduler = Scheduler::start(SchedulerConfig::default()).expect("a thread");
        let pool = DevicePool::start(&scheduler, ControlLaw::Vta).expect("a thread");
        (scheduler, pool)
    });
    Linker::new(pool.clone())
}

impl Scripted {
    pub fn new(device_name: &str) -> (Scripted, Sender<Step>) {
        let (sender, script) = mpsc::channel();
        let script = Arc::new(Mutex::new(script));
        let driver =
            Scripted { opened: Arc::default(), commands: Arc::default(), script, device_name: device_name.to_owned() };
        (driver, sender)
    }

    /// Links its device.
    pub fn link(self) -> DeviceHandle {
        linker().link(&self.into_found()).expect("linked")
    }

    fn into_found(self) -> FoundDevice {
        let description = self.find().expect("found").remove(0);
        FoundDevice { driver: Arc::new(self), description }
    }
}

impl Driver for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn find(&self) -> Result<Vec<Description>, DeviceError> {
        let sensor = Channel::sensor("level", "level", ValueKind::Real, Unit::NONE);
        let switch =
            Channel { name: "switch".to_owned(), kind: ValueKind::Boolean, access: Access::Act, ..sensor.clone() };
        Ok(vec![Description { name: self.device_name.clone(), title: String::new(), channels: vec![sensor, switch] }])
    }

    fn open(&self, _description: &Description) -> Result<Box<dyn Device>, DeviceError> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(ScriptedDevice { script: Arc::clone(&self.script), commands: Arc::clone(&self.commands) }))
    }
}

struct ScriptedDevice {
    script: Arc<Mutex<Receiver<Step>>>,
    commands: Arc<AtomicUsize>,
}

impl ScriptedDevice {
    fn step(&self) -> Result<Value, DeviceError> {
        self.commands.fetch_add(1, Ordering::SeqCst);
        let step = self.script.lock().expect("one thread").recv();
        match step {
            Ok(Step::Give(result)) => result,
            Ok(Step::Panic) => std::panic::resume_unwind(Box::new("a test")),
            Err(_) => Err(DeviceError::Failed("the test is over".to_owned())),
        }
    }
}

impl Device for ScriptedDevice {
    fn read(&mut self, _channel: usize) -> Result<Value, DeviceError> {
        self.step()
    }

    fn act(&mut self, _channel: usize, _value: &Value) -> Result<(), DeviceError> {
        self.step().map(drop)
    }
}

fn level(real: f64) -> Step {
    Step::Give(Ok(Value::Real(real)))
}

#[test]
fn a_device_that_hangs_holds_up_nobody_else() {
    let (hanging, hanging_script) = Scripted::new("hanging");
    let (other, other_script) = Scripted::new("other");
    let (hanging, other) = (hanging.link(), other.link());
    assert_eq!(hanging.run(0, Command::Read, SHORT), Err(DeviceError::TimedOut(SHORT)));
    other_script.send(level(2.0)).expect("sent");
    assert_eq!(other.run(0, Command::Read, PATIENCE), Ok(Value::Real(2.0)));
    hanging_script.send(level(1.0)).expect("sent");
    hanging_script.send(level(3.0)).expect("sent");
    assert_eq!(hanging.run(0, Command::Read, PATIENCE), Ok(Value::Real(3.0)), "and it may come back");
}

#[test]
fn more_devices_hang_than_there_are_processors_and_the_others_are_read() {
    let scheduler = Scheduler::start(SchedulerConfig::default()).expect("a thread");
    let linker = Linker::new(DevicePool::start(&scheduler, ControlLaw::Vta).expect("a thread"));
    let hanging = 3 * scheduler.limits().processors;
    let scripts: Vec<_> = (0..hanging)
        .map(|number| {
            let (driver, script) = Scripted::new(&format!("hanging{number}"));
            let device = linker.link(&driver.into_found()).expect("linked");
            assert_eq!(device.run(0, Command::Read, SHORT), Err(DeviceError::TimedOut(SHORT)));
            (device, script)
        })
        .collect();
    let (driver, script) = Scripted::new("other");
    script.send(level(2.0)).expect("sent");
    let other = Linker { open_patience: PATIENCE, ..linker }.link(&driver.into_found()).expect("linked");
    assert_eq!(other.run(0, Command::Read, PATIENCE), Ok(Value::Real(2.0)));
    let pool = scheduler.snapshot().pools.remove(0);
    assert!(pool.threads > hanging, "{} threads", pool.threads);
    drop(scripts);
}

/// A device that tells when it is closed.
struct Closing(Sender<()>);

impl Device for Closing {
    fn read(&mut self, _channel: usize) -> Result<Value, DeviceError> {
        Ok(Value::Boolean(true))
    }

    fn act(&mut self, _channel: usize, _value: &Value) -> Result<(), DeviceError> {
        Ok(())
    }

    fn close(&mut self) {
        self.0.send(()).expect("the test listens");
    }
}

/// Its driver.
struct Door(Mutex<Sender<()>>);

impl Driver for Door {
    fn name(&self) -> &str {
        "door"
    }

    fn find(&self) -> Result<Vec<Description>, DeviceError> {
        Ok(Vec::new())
    }

    fn open(&self, _description: &Description) -> Result<Box<dyn Device>, DeviceError> {
        Ok(Box::new(Closing(self.0.lock().expect("a lock").clone())))
    }
}

/// Such a device, and when it is closed.
fn door() -> (FoundDevice, Receiver<()>) {
    let (sender, closed) = mpsc::channel();
    let description = Description { name: "door".to_owned(), title: String::new(), channels: Vec::new() };
    (FoundDevice { driver: Arc::new(Door(Mutex::new(sender))), description }, closed)
}

#[test]
fn a_device_is_closed_when_nobody_has_it_any_more() {
    let (found, closed) = door();
    let device = linker().link(&found).expect("linked");
    let again = device.clone();
    drop(device);
    assert!(closed.recv_timeout(SHORT).is_err(), "somebody has it");
    drop(again);
    assert_eq!(closed.recv_timeout(PATIENCE), Ok(()));
}

#[test]
fn a_device_is_closed_although_the_pool_has_no_room_for_it() {
    let scheduler = Scheduler::start(SchedulerConfig::default()).expect("a thread");
    let config = PoolConfig::for_resources(ControlLaw::Fixed(1));
    let patience = Patience { length_max: 1, ..config.patience };
    let pool = DevicePool::with_config(&scheduler, PoolConfig { patience, ..config }).expect("a thread");
    let linker = Linker { open_patience: PATIENCE, ..Linker::new(pool) };
    let ((hanging, hanging_script), (waiting, waiting_script)) = (Scripted::new("hanging"), Scripted::new("waiting"));
    let (found, closed) = door();
    let commands = Arc::clone(&hanging.commands);
    let hanging = linker.link(&hanging.into_found()).expect("linked");
    let waiting = linker.link(&waiting.into_found()).expect("linked");
    let door = linker.link(&found).expect("linked");
    let (sender, outcomes) = mpsc::channel();
    let submit = |device: &DeviceHandle| {
        let sender = sender.clone();
        device.submit(0, Command::Read, Box::new(move |outcome| sender.send(outcome).expect("the test listens")));
    };
    submit(&hanging);
    while commands.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    submit(&waiting);
    drop(door);
    hanging_script.send(level(1.0)).expect("sent");
    waiting_script.send(level(2.0)).expect("sent");
    assert_eq!(closed.recv_timeout(PATIENCE), Ok(()));
    assert_eq!([outcomes.recv(), outcomes.recv()], [Ok(Ok(Value::Real(1.0))), Ok(Ok(Value::Real(2.0)))]);
}

#[test]
fn a_failure_and_a_panic_fail_one_command_each() {
    let (driver, script) = Scripted::new("failing");
    let opened = Arc::clone(&driver.opened);
    let device = driver.link();
    script.send(Step::Give(Err(DeviceError::Failed("a cold joint".to_owned())))).expect("sent");
    script.send(Step::Panic).expect("sent");
    script.send(level(4.0)).expect("sent");
    assert_eq!(device.run(0, Command::Read, PATIENCE), Err(DeviceError::Failed("a cold joint".to_owned())));
    assert_eq!(opened.load(Ordering::SeqCst), 1, "a failure is no reason to open it anew");
    assert_eq!(device.run(0, Command::Read, PATIENCE), Err(DeviceError::Failed("the driver panicked".to_owned())));
    assert_eq!(device.run(0, Command::Read, PATIENCE), Ok(Value::Real(4.0)));
    assert_eq!(opened.load(Ordering::SeqCst), 2, "what a panic left behind is not used again");
}

#[test]
fn a_device_that_has_gone_is_opened_anew() {
    let (driver, script) = Scripted::new("plugged");
    let opened = Arc::clone(&driver.opened);
    let device = driver.link();
    script.send(Step::Give(Err(DeviceError::Absent("unplugged".to_owned())))).expect("sent");
    script.send(level(5.0)).expect("sent");
    assert_eq!(device.run(0, Command::Read, PATIENCE), Err(DeviceError::Absent("unplugged".to_owned())));
    assert_eq!(device.run(0, Command::Read, PATIENCE), Ok(Value::Real(5.0)));
    assert_eq!(opened.load(Ordering::SeqCst), 2);
}

#[test]
fn commands_that_do_not_fit_never_reach_the_device() {
    let (driver, _script) = Scripted::new("strict");
    let commands = Arc::clone(&driver.commands);
    let device = driver.link();
    let check = |channel, command, part: &str| {
        let error = device.run(channel, command, PATIENCE).expect_err("an error").to_string();
        assert!(error.contains(part), "{part:?} not in {error:?}");
    };
    check(0, Command::Act(Value::Real(1.0)), "strict/level is a sensor");
    check(1, Command::Read, "strict/switch cannot be read");
    check(1, Command::Act(Value::Real(0.5)), "takes a boolean, not a number");
    check(2, Command::Read, "no channel 2");
    assert_eq!(commands.load(Ordering::SeqCst), 0);
}

#[test]
fn no_actuator_is_driven_to_what_is_no_finite_number() {
    let (driver, _) = Scripted::new("supply");
    let commands = Arc::clone(&driver.commands);
    let mut found = driver.into_found();
    found.description.channels[0].access = Access::ReadAndAct;
    let device = linker().link(&found).expect("linked");
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = device.run(0, Command::Act(Value::Real(number)), PATIENCE).expect_err("an error").to_string();
        assert!(error.contains("takes a finite number"), "{error}");
    }
    assert_eq!(commands.load(Ordering::SeqCst), 0);
}

#[test]
fn more_commands_than_may_wait_are_refused() {
    let (driver, script) = Scripted::new("slow");
    let commands = Arc::clone(&driver.commands);
    let linker = Linker { commands_max: 2, ..linker() };
    let device = linker.link(&driver.into_found()).expect("linked");
    let (sender, outcomes) = mpsc::channel();
    let submit = || {
        let sender = sender.clone();
        device.submit(0, Command::Read, Box::new(move |outcome| sender.send(outcome).expect("the test listens")));
    };
    submit();
    while commands.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    (0..3).for_each(|_| submit());
    assert_eq!(outcomes.recv_timeout(PATIENCE), Ok(Err(DeviceError::Overloaded)), "two wait behind the first");
    for real in [1.0, 2.0, 3.0] {
        script.send(level(real)).expect("sent");
        assert_eq!(outcomes.recv_timeout(PATIENCE), Ok(Ok(Value::Real(real))));
    }
}

/// A driver that cannot look for devices, each in its own way.
enum Hopeless {
    Hangs(Mutex<Receiver<()>>),
    Panics,
    Fails,
}

impl Driver for Hopeless {
    fn name(&self) -> &str {
        match self {
            Hopeless::Hangs(_) => "hangs",
            Hopeless::Panics => "panics",
            Hopeless::Fails => "fails",
        }
    }

    fn find(&self) -> Result<Vec<Description>, DeviceError> {
        match self {
            Hopeless::Hangs(never) => {
                let _ = never.lock().expect("one thread").recv();
                Ok(Vec::new())
            }
            Hopeless::Panics => std::panic::resume_unwind(Box::new("a test")),
            Hopeless::Fails => Err(DeviceError::Failed("no bus".to_owned())),
        }
    }

    fn open(&self, _description: &Description) -> Result<Box<dyn Device>, DeviceError> {
        Err(DeviceError::Absent("hopeless".to_owned()))
    }
}

#[test]
fn drivers_that_cannot_look_hide_nothing_of_the_others() {
    let (_keep, never) = mpsc::channel();
    let (scripted, _script) = Scripted::new("there");
    let finder = Finder::new()
        .with(Hopeless::Panics)
        .with(Hopeless::Fails)
        .with(scripted)
        .with(Hopeless::Hangs(Mutex::new(never)));
    // The last of the drivers decides how long the search takes, so this much is waited.
    let patience = Duration::from_millis(200);
    let found = finder.find(patience);
    let names: Vec<&str> = found.devices.iter().map(|found| found.description.name.as_str()).collect();
    assert_eq!(names, ["there"]);
    let failures: Vec<(&str, &DeviceError)> =
        found.failures.iter().map(|(name, error)| (name.as_str(), error)).collect();
    assert_eq!(
        failures,
        [
            ("panics", &DeviceError::Failed("the driver panicked".to_owned())),
            ("fails", &DeviceError::Failed("no bus".to_owned())),
            ("hangs", &DeviceError::TimedOut(patience)),
        ]
    );
}

#[test]
fn what_cannot_be_opened_cannot_be_linked() {
    let found = FoundDevice {
        driver: Arc::new(Hopeless::Fails),
        description: Description { name: "x".to_owned(), title: String::new(), channels: Vec::new() },
    };
    assert_eq!(linker().link(&found).expect_err("an error"), DeviceError::Absent("hopeless".to_owned()));
}

#[test]
fn values_change_their_type_only_where_nothing_is_lost() {
    assert_eq!(Value::Integer(3).into_kind(ValueKind::Real), Some(Value::Real(3.0)));
    assert_eq!(Value::Integer((1 << 53) + 1).into_kind(ValueKind::Real), None);
    assert_eq!(Value::Real(3.0).into_kind(ValueKind::Integer), Some(Value::Integer(3)));
    assert_eq!(Value::Real(3.5).into_kind(ValueKind::Integer), None);
    assert_eq!(Value::Integer(1).into_kind(ValueKind::Boolean), Some(Value::Boolean(true)));
    assert_eq!(Value::Integer(2).into_kind(ValueKind::Boolean), None);
    assert_eq!(Value::Text("on".to_owned()).into_kind(ValueKind::Boolean), None);
}
