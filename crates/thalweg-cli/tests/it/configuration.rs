//! Settings from a file and the environment, in processes of their own.

use std::path::PathBuf;

use serde_json::Value;

use crate::program::{Running, command, tag};

/// A file of settings for one test.
struct File(PathBuf);

impl File {
    fn new(text: &str) -> File {
        let path = std::env::temp_dir().join(format!("thalweg-{}.toml", tag()));
        std::fs::write(&path, text).unwrap();
        File(path)
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let mut command = command(arguments);
        command.env("THALWEG_CONFIG", &self.0);
        Running::start(command)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_file_gives_every_setting_its_value_and_place() {
    let file = File::new("domain = 12\n\n[network]\nmulticast = false\n");
    let said = file.start(&["config"]).finish().expect_code(0).stdout;
    let place = file.0.display();
    let line = |key: &str| said.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}: {said}"));
    assert!(line("domain").ends_with(&format!("= 12         # {place}:1")), "{said}");
    assert!(line("network.multicast").contains(&format!("# {place}:4")), "{said}");
    assert!(line("network.ipv6").ends_with("# default"), "{said}");
    let mut overridden = command(&["config", "--json"]);
    overridden.env("THALWEG_CONFIG", &file.0).env("ROS_DOMAIN_ID", "13");
    let said: Value = serde_json::from_str(&Running::start(overridden).finish().expect_code(0).stdout).expect("JSON");
    let domain = &said["settings"][0];
    assert_eq!((&domain["value"], &domain["origin"]), (&"13".into(), &"ROS_DOMAIN_ID".into()));
}

#[test]
fn a_file_that_is_named_is_shown_with_the_environment_as_programs_would_use_it() {
    let (used, tried) = (File::new("domain = 12\n[network]\nipv6 = false\n"), File::new("domain = 14\n"));
    let mut command = command(&["config", "--json", "--file", &tried.0.display().to_string()]);
    command.env("THALWEG_CONFIG", &used.0).env("ROS_DOMAIN_ID", "13").env("ROS_STATIC_PEERS", "192.0.2.1");
    let said: Value = serde_json::from_str(&Running::start(command).finish().expect_code(0).stdout).expect("JSON");
    let told = |key: &str| {
        let settings = said["settings"].as_array().expect("a list");
        let setting = settings.iter().find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("{key}: {said}"));
        format!("{} {}", setting["value"].as_str().expect("text"), setting["origin"].as_str().expect("text"))
    };
    assert_eq!(told("domain"), "13 ROS_DOMAIN_ID");
    assert_eq!(told("participant.peers"), "[\"192.0.2.1\"] ROS_STATIC_PEERS");
    assert_eq!(told("network.ipv6"), "true default", "the file that is in use is not this one");
}

#[test]
fn a_mistake_in_the_file_stops_every_program_with_its_line() {
    let file = File::new("[network]\nmultcast = false\n");
    for arguments in [&["config"][..], &["ls"], &["pub", "chatter", "x"]] {
        let said = file.start(arguments).finish().expect_code(1);
        let expect =
            format!("{}:2:1: \"multcast\" is unknown in [network]: did you mean \"multicast\"?", file.0.display());
        assert!(said.stderr.contains(&expect), "{arguments:?}: {}", said.stderr);
    }
}

#[test]
fn programs_meet_in_the_domain_of_the_file_and_take_its_profiles_without_knowing_of_it() {
    let tag = tag();
    let network = format!("domain = 21\n[participant]\ndomain_tag = {tag:?}\n");
    let profile = "[profile.latched]\nreliability = \"reliable\"\ndurability = \"transient_local\"\n[[topic]]\n\
                   name = \"latch*\"\nprofile = \"latched\"\n";
    for (text, durability) in [(format!("{network}{profile}"), "TRANSIENT_LOCAL"), (network, "VOLATILE")] {
        let file = File::new(&text);
        let reader = file.start(&["sub", "latched"]);
        let listed = file.start(&["ls", "--json"]).finish().expect_code(0).stdout;
        assert!(listed.contains("latched"), "{listed}");
        assert!(listed.contains(durability), "{durability} not in {listed}");
        reader.signal("TERM");
        reader.finish();
    }
}
