//! What services of the file make of their inputs.

use std::sync::{Mutex, mpsc};

use super::*;
use crate::gateway::mirror::Mirror;
use crate::gateway::pack::ReadingPack;
use crate::gateway::rules;
use crate::message::Response;
use crate::resource::representation::READING_FORMATS;
use crate::service::{RemoteObservation, ResponseCompletion, ResponseListener, Services};

/// Longer than anything takes on a loaded machine; nothing waits for it when all is well.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until the resource at `path` has this value.
#[track_caller]
fn wait_for(gateway: &Gateway, path: &str, expect: &Value) {
    let start = std::time::Instant::now();
    while value(gateway, path).as_ref() != Some(expect) {
        assert!(start.elapsed() < PATIENCE, "/{path} is {:?}, not {expect:?}", value(gateway, path));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The resources `/a`, `/b` and so on with these values, and the services that publish of them.
fn published(values: &[&str]) -> GatewayPlan {
    let paths: Vec<char> = ('a'..).take(values.len()).collect();
    let resources = paths.iter().zip(values);
    let mut lines: String = resources
        .map(|(path, value)| format!("[[resource]]\npath = \"{path}\"\nunit = \"Cel\"\nvalue = {value}\n"))
        .collect();
    let inputs: String = paths.iter().map(|path| format!("\"/{path}\", ")).collect();
    for (rule, inputs) in [
        ("mean", format!("{inputs}\"/missing\"")),
        ("least", inputs.clone()),
        ("greatest", inputs.clone()),
        ("mean", "\"/missing\"".to_owned()),
    ] {
        let name = if inputs.starts_with("\"/m") { "none" } else { rule };
        lines.push_str(&format!(
            "[[service]]\nname = \"{name}\"\ndoes = \"{rule}\"\ninputs = [{inputs}]\noutput = \"/{name}\"\nperiod_ms = 10\n"
        ));
    }
    plan(&lines)
}

#[test]
fn mean_least_and_greatest_are_those_of_the_inputs_that_are_numbers_now() {
    // A text and a resource that is not there count nowhere; a truth is a number.
    let tables: [(&[&str], [f64; 3]); 4] = [
        (&["8", "-2", "3.5"], [9.5 / 3.0, -2.0, 8.0]),
        (&["1", "-2", "3.5"], [2.5 / 3.0, -2.0, 3.5]),
        (&["\"warm\"", "-2", "3"], [0.5, -2.0, 3.0]),
        (&["true", "false", "0.25"], [1.25 / 3.0, 0.0, 1.0]),
    ];
    let mut gateway = Gateway::start(published(tables[0].0)).expect("started");
    assert_eq!(gateway.start_parts().failed, Vec::<String>::new());
    for (values, expect) in tables {
        gateway.reload(published(values)).expect("taken over");
        for (path, expect) in ["mean", "least", "greatest"].into_iter().zip(expect) {
            wait_for(&gateway, path, &Value::Real(expect));
        }
    }
    let mean = gateway.store().find("mean").expect("it is published");
    let json = mean.get(&Get { accept: Some(content_format::JSON), queries: &[] }).expect("a reading");
    assert!(String::from_utf8_lossy(&json.payload).ends_with(r#""unit":"Cel"}"#), "the unit is that of the inputs");
    assert!(gateway.store().find("none").is_err(), "nothing is published before an input answers");
}

/// A thing whose `/level` has the next value of a script each time it is asked. It remembers what `/lamp` is told, and at which
/// value.
struct ScriptedLevel {
    script: &'static [&'static str],
    told: Mutex<LevelTold>,
    over: mpsc::Sender<()>,
}

#[derive(Default)]
struct LevelTold {
    /// How often `/level` was asked.
    asked: usize,
    orders: Vec<String>,
    /// So many orders are still refused.
    refusals: usize,
}

struct UnobservedLevel;

impl RemoteObservation for UnobservedLevel {}

impl Remote for ScriptedLevel {
    fn request(&self, _thing: &str, request: RequestBuf, completion: ResponseCompletion) {
        let mut told = self.told.lock().expect("a lock");
        let response = if request.code() == Code::GET {
            told.asked += 1;
            match self.script.get(told.asked - 1) {
                Some(text) => Response::content(*text, content_format::TEXT).with_max_age(0),
                None => {
                    // The test listens to the first one only.
                    let _ = self.over.send(());
                    Response::error(Code::NOT_FOUND, "the script is over")
                }
            }
        } else {
            let order = String::from_utf8_lossy(request.view().payload).into_owned();
            let at = self.script[told.asked - 1];
            told.orders.push(format!("{order} at {at}"));
            match told.refusals {
                0 => Response::new(Code::CHANGED),
                _ => {
                    told.refusals -= 1;
                    Response::error(Code::SERVICE_UNAVAILABLE, "not now")
                }
            }
        };
        drop(told);
        completion(Ok(response));
    }

    fn observe(&self, _thing: &str, _request: RequestBuf, _listener: ResponseListener) -> Box<dyn RemoteObservation> {
        Box::new(UnobservedLevel)
    }
}

/// What a service tells `/lamp` while `/level` has these values, one after the other; its first orders are refused.
#[track_caller]
fn check_orders(rule: ServiceRule, script: &'static [&'static str], refusals: usize, expect: &[&str]) {
    let (over, is_over) = mpsc::channel();
    let told = Mutex::new(LevelTold { refusals, ..LevelTold::default() });
    let thing = Arc::new(ScriptedLevel { script, told, over });
    let remote = Arc::clone(&thing) as Arc<dyn Remote>;
    let things = Things::new(LocalStore::new(), remote, 1000, system_clock());
    let mut services = Services::new(things, Arc::new(ThreadPoolManager::new(4, Priorities::default())));
    let plan = ServicePlan {
        name: "drive".to_owned(),
        inputs: vec!["coap://thing/level".to_owned()],
        output: "coap://thing/lamp".to_owned(),
        period: Duration::from_millis(1),
        rule,
    };
    services.start("drive", move |things, stop| rules::run(&plan, things, stop)).expect("started");
    is_over.recv_timeout(PATIENCE).expect("it asks again and again");
    assert!(services.stop("drive"));
    assert_eq!(thing.told.lock().expect("a lock").orders, expect, "{rule:?} {script:?}");
}

#[test]
fn a_switch_goes_on_above_one_bound_and_off_below_the_other_and_keeps_its_state_between_them() {
    let switch = ServiceRule::Switch { above: 10.0, below: 5.0 };
    let script = &["7", "10", "10.5", "11", "7", "5", "4.5", "4", "7", "10", "12"];
    check_orders(switch, script, 0, &["true at 10.5", "false at 4.5", "true at 12"]);
    check_orders(switch, &["1", "20", "1"], 0, &["false at 1", "true at 20", "false at 1"]);
    check_orders(switch, &["warm", "7"], 0, &[]);
    // What was refused is told again while it is still wanted.
    check_orders(switch, &["11", "12", "13"], 1, &["true at 11", "true at 12"]);
    check_orders(switch, &["11", "7", "13"], 1, &["true at 11", "true at 13"]);
}

#[test]
fn a_copy_is_written_once_for_each_new_value() {
    check_orders(ServiceRule::Copy, &["1", "1", "2", "2", "1"], 0, &["1 at 1", "2 at 2", "1 at 1"]);
    check_orders(ServiceRule::Copy, &["on", "warm"], 0, &["true at on", "warm at warm"]);
    check_orders(ServiceRule::Copy, &["1", "1", "1"], 1, &["1 at 1", "1 at 1"]);
}

/// A thing whose `/level` is a text and nothing else, and how often it was asked for something else.
#[derive(Default)]
struct TextLevel(Mutex<usize>);

impl Remote for TextLevel {
    fn request(&self, _thing: &str, request: RequestBuf, completion: ResponseCompletion) {
        let is_text = request.view().accept().is_none_or(|format| format == content_format::TEXT);
        *self.0.lock().expect("a lock") += usize::from(!is_text);
        completion(Ok(match is_text {
            true => Response::content("21.5", content_format::TEXT).with_max_age(0),
            false => Response::error(Code::NOT_ACCEPTABLE, "text alone"),
        }));
    }

    fn observe(&self, _thing: &str, _: RequestBuf, mut listener: ResponseListener) -> Box<dyn RemoteObservation> {
        listener(Ok(Response::content("21.5", content_format::TEXT)));
        Box::new(UnobservedLevel)
    }
}

#[test]
fn a_reading_that_its_thing_has_as_text_alone_counts_in_services_and_packs() {
    let (thing, store) = (Arc::new(TextLevel::default()), LocalStore::new());
    let things = Things::new(store.clone(), Arc::clone(&thing) as Arc<dyn Remote>, 1000, system_clock());
    let name = RemoteName { thing: "thing:5683".to_owned(), path: "level".to_owned() };
    let mirror = Arc::new(Mirror::start("far/level".to_owned(), name, &things, system_clock()));
    store.insert(Arc::clone(&mirror) as Arc<dyn Resource>).expect("a place");
    let get = |accept: u16| mirror.get(&Get { accept: Some(accept), queries: &[] });
    for format in READING_FORMATS.into_iter().chain(READING_FORMATS) {
        let reading = get(format).expect("a reading");
        assert_eq!(reading.content_format, Some(format));
        assert_eq!(reading.value(), Ok((Value::Real(21.5), String::new())), "{format}");
    }
    assert_eq!(*thing.0.lock().expect("a lock"), 4, "it is asked once for each format that it does not have");
    assert_eq!(get(content_format::OCTET_STREAM).expect_err("no reading").code(), Code::NOT_ACCEPTABLE);
    let pack = ReadingPack::new("all".to_owned(), "far".to_owned(), store, Arc::default());
    let pack = pack.get(&Get { accept: Some(content_format::SENML_JSON), queries: &[] }).expect("a pack");
    assert_eq!(String::from_utf8_lossy(&pack.payload), r#"[{"n":"far/level","v":21.5}]"#);
    let mut services = Services::new(things.clone(), Arc::new(ThreadPoolManager::new(4, Priorities::default())));
    for (output, input) in [("/mirrored", "/far/level"), ("/asked", "coap://thing/level")] {
        let plan = ServicePlan {
            name: output.to_owned(),
            inputs: vec![input.to_owned()],
            output: output.to_owned(),
            period: Duration::from_millis(10),
            rule: ServiceRule::Mean,
        };
        services.start(output, move |things, stop| rules::run(&plan, things, stop)).expect("started");
        let start = std::time::Instant::now();
        while things.value(output) != Ok((Value::Real(21.5), String::new())) {
            assert!(start.elapsed() < PATIENCE, "{input}: {:?}", things.value(output));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
