//! Types that Fast DDS announces and answers questions about, and values of them both ways.
//!
//! The other way there are no questions: Fast DDS ignores TYPE_INFORMATION of other vendors, whatever its `fastdds.type_propagation`
//! (`WriterProxyData::readFromCDRMessage` from 3.0 on), so that it matches our endpoints by the names of their types.

use std::fmt::Write;
use std::process::Command;

use serde_json::{Value, json};
use thalweg_types::type_object::{Describing, Equivalence, TypeIdentifier};
use thalweg_types::{Type, idl};

use super::program;
use super::types::description;
use crate::host::{Addresses, Host};
use crate::program::{Program, Said};
use crate::thalweg;

/// Kinds that Fast DDS's dynamic types have.
const ROBOT: &str = "
module demo {
  @final struct Point { double x; double y; };
  enum Mode { IDLE, BUSY };
  @appendable struct Robot {
    @key long id;
    string<16> name;
    Point at;
    sequence<Point> path;
    Mode mode;
    unsigned long long big;
  };
};
";

/// Fast DDS with a writer or a reader of the last type of a text.
#[track_caller]
fn start(host: Option<&Host>, domain: u32, text: &str, role: &str) -> Program {
    let types = idl::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let path = program("THALWEG_FASTDDS").display().to_string();
    let mut command = host.map_or_else(|| Command::new(&path), |host| host.command(&path));
    command.args(["topic", "--domain", &domain.to_string()]);
    if host.is_some() {
        command.args(["--address", "10.77.0.1"]);
    }
    let mut fast_dds = Program::start_with_input("Fast DDS", &command);
    for of in types.iter() {
        description(of).iter().for_each(|line| fast_dds.tell(line));
        fast_dds.tell("end");
    }
    let name = types.iter().last().and_then(Type::name).expect("a type that has a name");
    fast_dds.tell(&format!("{role} {TOPIC} {name}"));
    fast_dds.expect_text("ready");
    fast_dds
}

/// The identifier of the complete type of this name.
#[track_caller]
fn identifier(text: &str, name: &str) -> TypeIdentifier {
    let types = idl::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Describing::new(Equivalence::Complete).identifier(types.find(name).expect("the type")).expect("described")
}

/// What a program printed on standard output.
fn printed(said: &Said) -> String {
    let lines = said.lines.iter().filter(|line| !line.starts_with("! "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Participants that come later are answered like the first one: each of them learns the type.
#[test]
fn a_topic_of_fast_dds_is_shown_with_its_type_and_values() {
    let domain = thalweg::domain();
    let fast_dds = start(None, domain, ROBOT, "write");
    let said = thalweg::start(None, domain, &format!("topic type {TOPIC} --patience 60")).finish().well();
    let text = printed(&said);
    assert_eq!(identifier(&text, "demo::Robot"), identifier(ROBOT, "demo::Robot"), "{text}");
    for _ in 0..2 {
        let words = format!("topic echo {TOPIC} --json --count 2 --patience 60 --timeout 80");
        let said = thalweg::start(None, domain, &words).finish().well();
        let at = json!({"x": 0.5, "y": 1.5});
        let expected = json!({"id": 1, "name": "name", "at": at, "path": [], "mode": "IDLE", "big": 6});
        assert_eq!(said.objects().collect::<Vec<Value>>(), [expected.clone(), expected]);
    }
    fast_dds.finish().well();
}

#[test]
fn what_is_published_to_fast_dds_has_the_type_that_its_reader_announces() {
    let domain = thalweg::domain();
    let mut fast_dds = start(None, domain, ROBOT, "read");
    let sample = json!({
        "id": -7, "name": "seven", "at": {"x": 1.5, "y": -2.0}, "path": [{"x": 1.0, "y": 2.0}], "mode": "BUSY", "big": u64::MAX
    });
    let words = format!("topic pub {TOPIC} {sample} --count 3 --rate 5 --patience 60");
    thalweg::start(None, domain, &words).finish().well();
    let line = fast_dds.expect("a sample", |line| line.starts_with("sample "));
    let mut got: Value = serde_json::from_str(line.trim_start_matches("sample ")).expect("JSON");
    // It tells the value of an enumeration beside its name.
    got["mode"] = got["mode"]["name"].clone();
    assert_eq!(got, sample);
    fast_dds.finish().well();
}

/// Were it to learn types of other vendors, they would have to be tested too.
#[test]
fn fast_dds_ignores_what_we_announce_of_a_type() {
    let domain = thalweg::domain();
    let mut fast_dds = start(None, domain, ROBOT, "read");
    let words = format!("topic pub {TOPIC} {{\"id\":7}} --rate 5 --count 100000 --patience 60");
    let writer = thalweg::start(None, domain, &words);
    assert_eq!(fast_dds.expect_text("discovered demo::Robot"), "discovered demo::Robot plain");
    writer.kill();
    let other = start(None, domain, ROBOT, "write");
    assert_eq!(fast_dds.expect_text("discovered demo::Robot"), "discovered demo::Robot described");
    other.finish().well();
    fast_dds.finish().well();
}

#[test]
fn a_large_type_of_fast_dds_is_learned_across_a_link_that_loses_packets() {
    let (left, right) = Host::pair(1500, Addresses::Both);
    for host in [&left, &right] {
        host.send_one_by_one("eth0");
        host.drop_incoming("meta l4proto udp numgen random mod 100 < 10");
    }
    let text = library(40, 50);
    let fast_dds = start(Some(&left), 0, &text, "write");
    let said = thalweg::start(Some(&right), 0, &format!("topic type {TOPIC} --patience 80")).finish().well();
    let told = printed(&said);
    assert_eq!(identifier(&told, "library::Whole"), identifier(&text, "library::Whole"));
    fast_dds.finish().well();
}

/// A structure of so many others with so many members each, of more than 64 KB of type objects.
fn library(parts: usize, members: usize) -> String {
    let mut text = String::from("module library {\n");
    for part in 0..parts {
        let _ = writeln!(text, "  @final struct Part_{part} {{");
        (0..members).for_each(|member| {
            let _ = writeln!(text, "    long member_with_a_long_name_{member};");
        });
        text.push_str("  };\n");
    }
    text.push_str("  @appendable struct Whole {\n");
    for part in 0..parts {
        let _ = writeln!(text, "    Part_{part} part_{part};");
    }
    text + "  };\n};\n"
}

const TOPIC: &str = "robots";
