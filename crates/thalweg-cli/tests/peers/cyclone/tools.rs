//! The tools of Cyclone DDS for Python on topics of Thalweg, and those of Thalweg on topics of Cyclone DDS.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use thalweg_types::type_object::{Describing, Equivalence, TypeIdentifier};
use thalweg_types::{Type, idl};

use crate::program::{Program, Said};
use crate::{peer, thalweg};

/// Cyclone's tool, which is installed beside its interpreter, on the loopback interface. It looks for 5 s.
#[track_caller]
fn tool(domain: u32, words: &str) -> Program {
    let python = std::env::var("THALWEG_PEER_PYTHON").expect("no other vendor's program: run `cargo xtask test`");
    let mut command = Command::new(Path::new(&python).with_file_name("cyclonedds"));
    command.args(words.split_whitespace()).args(["--id", &domain.to_string(), "--runtime", "5"]);
    command.args(["--color", "none", "--suppress-progress-bar"]);
    // It breaks and shortens what exceeds the width of its terminal.
    command.env("COLUMNS", "600").env("PYTHONUNBUFFERED", "1").env("CYCLONEDDS_URI", peer::LOOPBACK);
    Program::start("Cyclone's tool", &command)
}

/// A writer of Thalweg on the topic `robots`, whose type is described in [`ROBOT`].
#[track_caller]
fn robots(domain: u32) -> Program {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("robot-{domain}.idl"));
    std::fs::write(&file, ROBOT).expect("the test's folder is writable");
    let qos = "--qos durability=transient-local --qos representation=xcdr2 --qos partition=one,two";
    let words = format!("--type demo::Robot --idl {} --rate 10 --count 100000 --wait-matching 0 {qos}", file.display());
    let mut writer = thalweg::start(None, domain, &format!("topic pub robots {SEVEN} {words}"));
    writer.expect_text("offers RELIABLE");
    writer
}

/// The words of what a program printed on standard output.
fn words(said: &Said) -> String {
    let lines = said.lines.iter().filter(|line| !line.starts_with("! "));
    lines.flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_has(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

fn complete_identifier(of: &Type) -> TypeIdentifier {
    Describing::new(Equivalence::Complete).identifier(of).expect("described")
}

#[test]
fn cyclones_typeof_shows_a_type_of_ours_as_it_is() {
    let domain = thalweg::domain();
    let writer = robots(domain);
    let said = words(&tool(domain, "typeof robots").finish().well());
    let expected = AS_CYCLONE_SHOWS_IT.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.ends_with(&expected), "{said}\nis not\n{expected}");
    writer.kill();
}

#[test]
fn cyclones_ls_shows_a_topic_of_ours_with_its_type_and_qos() {
    let domain = thalweg::domain();
    let writer = robots(domain);
    let said = words(&tool(domain, "ls --qos --topic robots").finish().well());
    let types = idl::parse(ROBOT).expect("IDL");
    let identifier = complete_identifier(types.find("demo::Robot").expect("the type"));
    let TypeIdentifier::Hash(_, hash) = identifier else { panic!("a structure has an object") };
    assert_has(&said, &["Typename │ demo::Robot", &format!("COMPLETE {}", hash.to_string().to_uppercase())]);
    assert_has(
        &said,
        &[
            "DataRepresentation(use_cdrv0_representation=False, use_xcdrv2_representation=True)",
            "Durability.TransientLocal",
            "History.KeepAll",
            "Partition(partitions=('one', 'two'))",
            "Reliability.Reliable(max_blocking_time='10 seconds')",
            "Property(key='__ProcessName', value='thalweg')",
        ],
    );
    writer.kill();
}

#[test]
fn cyclones_subscribe_prints_the_values_that_we_write() {
    let domain = thalweg::domain();
    let writer = robots(domain);
    let mut subscriber = tool(domain, "subscribe robots");
    let value = subscriber.expect_text("Robot(");
    assert_eq!(value.trim_end(), SEVEN_AS_CYCLONE_PRINTS_IT);
    subscriber.kill();
    writer.kill();

    // A type that the program itself has.
    let domain = thalweg::domain();
    let words = "pub Square --type ShapeType --rate 10 --count 100000 --readers 0 --acknowledge-timeout 0 RED,1,2,3";
    let writer = thalweg::start(None, domain, words);
    let mut subscriber = tool(domain, "subscribe Square");
    let value = subscriber.expect_text("ShapeType(");
    assert_eq!(value.trim_end(), "ShapeType(color='RED', x=1, y=2, shapesize=3)");
    subscriber.kill();
    writer.kill();
}

#[test]
fn a_topic_of_cyclone_is_shown_with_its_type_and_values() {
    let domain = thalweg::domain();
    let words = "pub --topic machines --type machine --xcdr 2 --count 1200 --rate 10 --wait-matched 0 --settle 0";
    let writer = peer::start(None, domain, words);
    let said = thalweg::start_alone(&format!("topic type machines --patience 60 --domain {domain}")).finish().well();
    let lines = said.lines.iter().filter(|line| !line.starts_with("! "));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let (told, expected) = (idl::parse(&text), idl::parse(MACHINE));
    let [told, expected] = [told, expected].map(|types| {
        let types = types.unwrap_or_else(|error| panic!("{error}\n{text}"));
        complete_identifier(types.find("kinds::Machine").expect("the type"))
    });
    assert_eq!(told, expected, "{text}");

    let words = format!("topic echo machines --json --count 2 --patience 60 --timeout 80 --domain {domain}");
    let said = thalweg::start_alone(&words).finish().well();
    let values: Vec<Value> = said.objects().collect();
    assert_eq!(values.len(), 2, "{values:#?}");
    for value in &values {
        let index = u64::MAX - value["id"].as_u64().expect("a number");
        assert_eq!(value["name"], format!("m{index}"), "{value}");
        let (color, member, load) =
            if index % 2 == 1 { ("GREEN", "mass", json!(index as f64 + 0.25)) } else { ("RED", "what", json!("much")) };
        assert_eq!((&value["color"], &value["load"][member]), (&json!(color), &load), "{value}");
        assert_eq!(value["settings"]["label"], "ü", "{value}");
        assert_eq!(value["grid"], json!([[index, 2, 3], [4, 5, -6]]), "{value}");
    }
    writer.kill();
}

/// Most kinds of types that Cyclone's Python has.
const ROBOT: &str = "
module demo {
  enum Mode { IDLE, BUSY };
  @bit_bound(8) bitmask Lights { left, @position(3) right };
  @final struct Point { double x; double y; };
  @mutable struct Settings { @id(7) string label; @id(3) sequence<unsigned long, 4> steps; };
  @appendable union Load switch (short) { case 1: case 2: double mass; default: string what; };
  typedef sequence<Point> Path;
  @appendable struct Base { @key long id; };
  @appendable struct Robot : Base {
    string<16> name;
    Mode mode;
    Lights lights;
    Point at;
    Path path;
    short grid[2][3];
    Settings settings;
    Load load;
    @optional double speed;
    octet raw[2];
    boolean flag;
    uint8 small;
    char letter;
  };
};
";

/// What Cyclone's tool makes of that: it leaves out the ids of members, and has other names for `octet`, `uint8` and `boolean`.
const AS_CYCLONE_SHOWS_IT: &str = "
module demo {
  @appendable struct Base { @key long id; };
  @appendable enum Mode { IDLE, BUSY };
  @bit_bound(8)@appendable bitmask Lights { @position(0) left, @position(3) right };
  @final struct Point { double x; double y; };
  typedef sequence<demo::Point> demo::Path;
  @mutable struct Settings { string label; sequence<unsigned long, 4> steps; };
  @appendable union Load switch (short) { case 1: case 2: double mass; default: string what; };
  @appendable struct Robot : Base {
    string<16> name;
    demo::Mode mode;
    demo::Lights lights;
    demo::Point at;
    demo::Path path;
    short grid[2][3];
    demo::Settings settings;
    demo::Load load;
    @optional double speed;
    byte raw[2];
    bool flag;
    octet small;
    char letter;
  };
};
";

/// A sample of it on the command line.
const SEVEN: &str = concat!(
    r#"{"id":7,"name":"seven","mode":"BUSY","lights":["right"],"at":{"x":1.5,"y":-2},"path":[{"x":1,"y":2}],"#,
    r#""grid":[[1,2,3],[4,5,6]],"settings":{"label":"l","steps":[1,2]},"load":{"$discriminator":2,"mass":0.5},"#,
    r#""raw":[1,2],"letter":"z"}"#
);

const SEVEN_AS_CYCLONE_PRINTS_IT: &str = "Robot(id=7, name='seven', mode=<Mode.BUSY: 1>, \
    lights=Lights(left=False, right=True), at=Point(x=1.5, y=-2.0), path=[Point(x=1.0, y=2.0)], \
    grid=[[1, 2, 3], [4, 5, 6]], settings=Settings(label='l', steps=[1, 2]), load=Load(discriminator=2, mass=0.5), \
    speed=None, raw=b'\\x01\\x02', flag=False, small=0, letter='z')";

/// The type of `peers/cyclone-py/machine.py`, as Cyclone's Python announces it: what an annotation does not say is final.
const MACHINE: &str = "
module kinds {
  @bit_bound(8) @final enum Color { RED, @value(5) GREEN };
  @final struct Point { double x; float y; };
};
typedef string Array_of_string_by2[2];
typedef float Array_of_float_by3[3];
module kinds {
  @mutable struct Settings { string label; @optional double scale; sequence<unsigned long> steps; };
  @bit_bound(12) @final bitmask Lights { @position(0) left, @position(7) right };
  @appendable union Load switch (short) { case 1: case 2: double mass; default: string what; };
  @appendable struct Machine {
    @key unsigned long long id;
    @key string<8> name;
    Color color;
    Point at;
    sequence<Point, 4> path;
    short grid[2][3];
    sequence<::Array_of_string_by2> pairs;
    sequence<::Array_of_float_by3> vectors;
    Settings settings;
    Lights lights;
    Load load;
    char letter;
    boolean flag;
    sequence<uint8> raw;
    @optional long maybe;
    int8 small;
  };
};
";
