//! `thalweg advisor`: advice for recorded machines and for this one, wrong usage, and what a user without rights applies and takes back.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use thalweg_host::may_make_namespaces;
use thalweg_lab::profile::Profile;

use crate::program::{Running, Said, TestFolder, command, run};

/// Recorded machines with the text of each, by its profile, and the interface of that.
const TEXTS: [(&str, &str, &str); 7] = [
    ("server-10g", "video", "eno1"),
    ("server-10g", "telemetry", "eno1"),
    ("laptop-powersave", "video", "enp3s0"),
    ("laptop-powersave", "telemetry", "enp3s0"),
    ("container-quota", "video", "eth0"),
    ("raspberry-pi", "bulk", "eth0"),
    ("paper-pci-x", "paper-2006", "eth1"),
];

fn recorded(machine: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../thalweg-advisor/testdata").join(machine)
}

#[track_caller]
fn advise(machine: &str, options: &[&str]) -> Said {
    let folder = recorded(machine);
    let folder = folder.to_str().expect("text");
    run(&[&["advisor", "advise", "--recorded", folder][..], options].concat())
}

#[track_caller]
fn parsed(said: Said) -> Value {
    serde_json::from_str(&said.expect_code(0).stdout).expect("one JSON object")
}

/// The advice for a stream over the server's adapter.
#[track_caller]
fn on_server(options: &[&str]) -> Value {
    parsed(advise("server-10g", &[&["--interface", "eno1", "--json"][..], options].concat()))
}

#[track_caller]
fn setting<'a>(advice: &'a Value, name: &str) -> &'a Value {
    let settings = advice["settings"].as_array().expect("a list");
    settings.iter().find(|setting| setting["name"] == name).unwrap_or_else(|| panic!("no advice on {name}"))
}

#[track_caller]
fn number(advice: &Value, name: &str) -> u64 {
    advice["numbers"][name]["value"].as_u64().unwrap_or_else(|| panic!("no number {name}: {}", advice["numbers"]))
}

#[test]
fn advice_for_recorded_machines_is_printed_in_full() {
    for (machine, profile, interface) in TEXTS {
        let mut options = vec!["--profile", profile, "--interface", interface];
        let answers = fs::read_to_string(recorded(machine).join("probes.json")).expect("recorded");
        let answers: Value = serde_json::from_str(&answers).expect("answers");
        if !answers["path"].is_null() {
            options.extend(["--peer", "192.0.2.1"]);
        }
        let expect = fs::read_to_string(recorded(machine).join(format!("advice-{profile}.txt"))).expect("a text");
        let said = advise(machine, &options).expect_code(0);
        assert_eq!(said.stdout.trim_end(), expect.trim_end(), "{machine} {profile}");
        assert_eq!(said.stderr, "");
    }
}

#[test]
fn advice_as_json_tells_values_effects_steps_and_arithmetic() {
    let advice = on_server(&["--profile", "video", "--peer", "192.0.2.1"]);
    let surroundings = json!([advice["device"], advice["peer"], advice["mtu_bytes"]]);
    assert_eq!(surroundings, json!(["eno1", "192.0.2.1", 9000]));
    assert_eq!(advice["stream"]["profile"], "video");
    assert_eq!(advice["stream"]["network"], "v4");
    assert_eq!(number(&advice, "receive_buffer"), 2_447_642);
    for name in ["receive_buffer", "receive_buffer_joined", "pacing_rate", "fragment_memory", "packet_budget"] {
        assert!(advice["numbers"][name]["why"].as_str().is_some_and(|why| !why.is_empty()), "{name}");
    }
    assert!(advice["numbers"]["writer_window"].is_null(), "video is not acknowledged");
    for setting in advice["settings"].as_array().expect("a list") {
        for member in ["name", "now", "computed", "why", "changes", "effect", "step", "probe"] {
            assert!(setting.get(member).is_some(), "{member} of {setting}");
        }
    }
    let cap = setting(&advice, "net.core.rmem_max");
    assert_eq!(json!([cap["now"], cap["computed"]]), json!(["212992", "1224704"]));
    let place = json!({ "kind": "sysctl", "name": "net.core.rmem_max" });
    assert_eq!(cap["step"], json!({ "step": "write", "place": place, "value": "1224704" }));
    assert_eq!(cap["effect"], json!({ "effect": "works" }));
    let inert = setting(&advice, "net.core.rmem_default");
    assert_eq!(json!([inert["effect"]["effect"], inert["step"]["step"]]), json!(["none-here", "keep"]));
    assert!(inert["effect"]["reason"].as_str().is_some_and(|reason| reason.contains("does not depend")), "{inert}");
    assert_eq!(setting(&advice, "UDP_SEGMENT, UDP_GRO")["step"]["step"], "in-program");
    assert_eq!(setting(&advice, "eno1 channels")["step"]["step"], "by-hand");
    assert_eq!(advice["paper"], Value::Array(Vec::new()));
    assert_eq!(advice["answers"]["wake_ups"]["count"], 2800);
    assert!(advice["remarks"].is_array() && advice["system"]["settings"].is_object());
    let paper = parsed(advise("paper-pci-x", &["--profile", "paper-2006", "--interface", "eth1", "--json"]));
    assert_eq!(paper["paper"].as_array().map(Vec::len), Some(10));
}

#[test]
fn each_option_of_the_stream_changes_what_follows_from_it() {
    let usual = on_server(&[]);
    let of = |options: &[&str], name: &str| number(&on_server(options), name);
    let (buffer, pacing) = (number(&usual, "receive_buffer"), number(&usual, "pacing_rate"));
    assert!(of(&["--writers", "2"], "receive_buffer").abs_diff(2 * buffer) <= 1);
    assert!(of(&["--rate", "60000/1001"], "receive_buffer") > buffer);
    assert!(of(&["--size", "1000000"], "receive_buffer") < buffer);
    assert!(of(&["--departing", "at-once"], "receive_buffer") > buffer, "a frame at once");
    assert_eq!(of(&["--link", "1000"], "pacing_rate"), 900_000_000);
    assert!(of(&["--deadline", "5ms"], "pacing_rate") > pacing);
    assert_eq!(number(&usual, "fragment_memory"), 0);
    assert!(of(&["--datagram", "65000"], "fragment_memory") > 0);
    let urgent = on_server(&["--deadline", "100us"]);
    assert_eq!(setting(&urgent, "cpu0 scaling_governor")["computed"], "performance");
    assert!(setting(&usual, "cpu0 scaling_governor")["computed"].is_null());
    assert_eq!(setting(&usual, "eno1 mtu")["effect"]["effect"], "unknown");
    let tried = on_server(&["--peer", "192.0.2.1"]);
    assert_eq!(setting(&tried, "eno1 mtu")["effect"]["effect"], "works");
    let sixth = on_server(&["--peer", "2001:db8::1", "--profile", "bulk"]);
    assert_eq!(sixth["stream"]["network"], "v6");
    // Without a name the first adapter that is up, and another one by its name.
    assert_eq!(parsed(advise("server-10g", &["--json"]))["device"], "eno1");
    assert_eq!(parsed(advise("server-10g", &["--json", "--interface", "lo"]))["device"], "lo");
}

#[test]
fn wrong_usage_is_told_with_what_is_allowed() {
    let check = |code: i32, said: Said, part: &str| {
        let said = said.expect_code(code);
        assert!(said.stderr.contains(part), "{part:?} not in {}", said.stderr);
        assert_eq!(said.stdout, "", "nothing beside the error");
    };
    let refused = |options: &[&str], part: &str| check(2, advise("server-10g", options), part);
    refused(&["--profile", "vidio"], "possible values: video, telemetry, bulk, paper-2006");
    refused(&["--rate", "0"], "not a rate; give one such as 50 or 30000/1001");
    refused(&["--rate", "1e8"], "from 0.001 to 10,000,000 samples a second");
    refused(&["--size", "0"], "from 1 byte to 4 GiB");
    refused(&["--writers", "0"], "1 to 100,000 writers");
    refused(&["--deadline", "5"], "us, ms or s");
    refused(&["--deadline", "0s"], "more than nothing and at most an hour");
    refused(&["--departing", "slowly"], "paced, at-once");
    refused(&["--profile", "bulk", "--datagram", "40"], "from 57 to 65,507 bytes");
    refused(&["--peer", "somewhere"], "somewhere");
    refused(&["--interface", "absent0"], "there is no interface absent0");
    refused(&["--link", "0"], "1..=1000000");
    refused(&["--watch", "0"], "give 0.1 to 3600 seconds");
    check(2, run(&["advisor", "apply", "--fragment", "x", "--until-restart"]), "cannot be used with");
    check(2, run(&["advisor", "apply", "--recorded", "."]), "--recorded");
    check(2, run(&["advisor", "revert", "--profile", "video"]), "--profile");
    check(2, run(&["advisor", "advize"]), "advise");
    let folder = TestFolder::new();
    let broken = folder.path("");
    let without = run(&["advisor", "advise", "--recorded", &broken]);
    check(1, without, "probes.json cannot be read: No such file");
    folder.write("probes.json", "{\"wake_ups\": 3}");
    check(1, run(&["advisor", "advise", "--recorded", &broken]), "probes.json cannot be read: ");
}

#[test]
fn advice_for_this_host_measures_and_changes_nothing() {
    let before = settings_of_host();
    let advice = parsed(run(&["advisor", "advise", "--watch", "0.1", "--interface", "lo", "--json"]));
    assert_eq!(advice["device"], "lo");
    assert!(advice["answers"]["granted_buffer"]["granted_bytes"].as_u64() > Some(0), "{}", advice["answers"]);
    assert!(advice["answers"]["wake_ups"]["count"].as_u64() > Some(0), "{}", advice["answers"]);
    assert!(advice["settings"].as_array().is_some_and(|settings| settings.len() > 20));
    assert_eq!(settings_of_host(), before);
}

#[test]
fn a_signal_ends_a_long_measurement_at_once() {
    let advising = Running::start(command(&["advisor", "advise", "--watch", "300", "--interface", "lo"]));
    std::thread::sleep(Duration::from_secs(1));
    advising.signal("TERM");
    advising.finish_within(Duration::from_secs(10)).expect_code(130);
}

/// What `apply` could change beside its own files, as far as programs on the same host leave it alone.
fn settings_of_host() -> Vec<Option<String>> {
    let names =
        ["core/rmem_max", "core/wmem_max", "core/netdev_budget", "ipv4/udp_mem", "ipv4/ip_local_reserved_ports"];
    let kernel = names.into_iter().map(|name| PathBuf::from("/proc/sys/net").join(name));
    let files = ["/etc/sysctl.d/60-thalweg.conf", "/var/lib/thalweg/undo.jsonl"].into_iter().map(PathBuf::from);
    kernel.chain(files).map(|path| fs::read_to_string(path).ok()).collect()
}

/// A user without rights, with a home of its own.
struct User {
    folder: TestFolder,
    program: PathBuf,
}

impl User {
    fn new() -> User {
        let folder = TestFolder::new();
        let home = folder.path("home");
        fs::create_dir(&home).expect("made");
        let mut program = PathBuf::from(env!("CARGO_BIN_EXE_thalweg"));
        if may_make_namespaces() {
            chown(&home, Some(NOBODY), Some(NOBODY)).expect("given away");
            let is_open = |path: &Path| fs::metadata(path).is_ok_and(|there| there.permissions().mode() & 1 != 0);
            // Below a home that is closed to others the program is out of reach.
            if !program.ancestors().all(is_open) {
                program = PathBuf::from(folder.path("thalweg"));
                fs::copy(env!("CARGO_BIN_EXE_thalweg"), &program).expect("copied");
            }
        }
        User { folder, program }
    }

    fn home(&self) -> PathBuf {
        PathBuf::from(self.folder.path("home"))
    }

    #[track_caller]
    fn run(&self, action: &str, options: &[&str]) -> Said {
        let mut command = Command::new(&self.program);
        command.args(["advisor", action]).args(options).current_dir(self.home());
        command.env("HOME", self.home()).env_remove("XDG_STATE_HOME");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if may_make_namespaces() {
            command.uid(NOBODY).gid(NOBODY);
        }
        Running::start(command).finish()
    }

    /// Applies; what needs rights may be refused, and is told then.
    #[track_caller]
    fn apply(&self, options: &[&str]) -> Said {
        let said = self.run("apply", &[&STREAM[..], options].concat());
        if said.code == Some(0) {
            return said;
        }
        let said = said.expect_code(1);
        assert!(said.stderr.contains("changes were not made or not kept; the list says why"), "{}", said.stderr);
        assert!(said.stdout.contains("REFUSED:") || said.stdout.contains("TAKEN BACK:"), "{}", said.stdout);
        said
    }

    /// The files below the home.
    fn files(&self) -> Vec<String> {
        let (mut folders, mut files) = (vec![self.home()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push(path.strip_prefix(self.home()).expect("below").to_str().expect("text").to_owned());
                }
            }
        }
        files.sort();
        files
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.home().join(file)).expect("there")
    }
}

#[test]
fn a_user_without_rights_gets_a_profile_and_writes_nothing_else() {
    let (user, before) = (User::new(), settings_of_host());
    let said = user.apply(&[]);
    assert!(said.stdout.contains("home/stream.toml: nothing -> a file  written"), "{}", said.stdout);
    assert!(said.stdout.contains("`thalweg advisor revert` puts back what is in"), "{}", said.stdout);
    assert_eq!(user.files(), [".local/state/thalweg/undo.jsonl", "stream.toml"]);
    assert_eq!(settings_of_host(), before);
    let profile = Profile::parse(&user.read("stream.toml")).expect("a profile");
    assert!(profile.participant.receive_buffer_bytes > Some(0), "{profile:?}");
    // The way back from a second application leads to the time before the first one.
    user.apply(&["--writers", "40"]);
    assert_ne!(Profile::parse(&user.read("stream.toml")).expect("a profile"), profile);
    let said = user.run("revert", &[]).expect_code(0);
    assert!(said.stdout.contains("home/stream.toml: nothing again"), "{}", said.stdout);
    assert_eq!(user.files(), [""; 0]);
    assert_eq!(user.run("revert", &[]).expect_code(0).stdout, "nothing is left to put back\n");
    assert_eq!(settings_of_host(), before);
}

#[test]
fn what_others_changed_is_told_by_verify_and_stays_unless_forced() {
    let user = User::new();
    user.apply(&["--out", "kept/p.toml"]);
    let verified = |options: &[&str]| user.run("verify", &[&STREAM[..], options].concat());
    let said = verified(&["--json"]);
    assert!(matches!(said.code, Some(0 | 1)), "{}", said.stderr);
    let found: Value = serde_json::from_str(&said.stdout).expect("one JSON object");
    assert_eq!(found["drifted"], Value::Array(Vec::new()));
    let checks: Vec<&str> =
        found["checks"].as_array().expect("a list").iter().filter_map(|check| check["name"].as_str()).collect();
    assert_eq!(checks, ["receive buffer", "stall", "path", "wake-ups", "batches", "packets", "profile"]);
    assert!(found["checks"][2]["is_met"].is_null(), "no peer was named: {found}");
    fs::write(user.home().join("kept/p.toml"), "by = \"somebody else\"\n").expect("written");
    let said = verified(&[]).expect_code(1);
    assert!(said.stdout.contains("CHANGED ") && said.stdout.contains("which somebody else has set"), "{}", said.stdout);
    assert!(said.stderr.contains("`thalweg advisor advise` says what helps"), "{}", said.stderr);
    let said = user.run("revert", &[]).expect_code(1);
    assert!(said.stdout.contains("CHANGED by somebody else") && said.stdout.contains("--force"), "{}", said.stdout);
    assert!(said.stderr.contains("places were not put back"), "{}", said.stderr);
    assert_eq!(user.read("kept/p.toml"), "by = \"somebody else\"\n");
    let reverted = parsed(user.run("revert", &["--force", "--json"]));
    let of_file = |one: &&Value| one["place"]["kind"] == "file";
    let endings: Vec<&Value> = reverted.as_array().expect("a list").iter().filter(of_file).collect();
    assert_eq!(endings.len(), 1, "{reverted}");
    assert_eq!(json!([endings[0]["before"], endings[0]["ending"]["ending"]]), json!([null, "restored"]));
    assert_eq!(user.files(), [""; 0]);
}

#[test]
fn a_way_back_that_others_may_write_is_not_believed() {
    let user = User::new();
    user.apply(&["--undo", "back.jsonl"]);
    assert_eq!(user.files(), ["back.jsonl", "stream.toml"]);
    let way_back = user.home().join("back.jsonl");
    fs::set_permissions(&way_back, fs::Permissions::from_mode(0o666)).expect("set");
    for action in ["revert", "verify", "apply"] {
        let said = user.run(action, &["--undo", "back.jsonl"]).expect_code(1);
        assert!(said.stderr.contains("may be written by others, and is not believed"), "{action}: {}", said.stderr);
    }
    fs::set_permissions(&way_back, fs::Permissions::from_mode(0o600)).expect("set");
    user.run("revert", &["--undo", "back.jsonl"]).expect_code(0);
    assert_eq!(user.files(), [""; 0]);
}

/// A stream that loopback carries, measured in little time.
const STREAM: [&str; 6] = ["--profile", "telemetry", "--interface", "lo", "--watch", "0.1"];
/// A user that owns nothing.
const NOBODY: u32 = 65_534;
