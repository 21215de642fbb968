//! Types of more than 64 KB are asked for and told across a link that loses packets, between Thalweg and Thalweg and Cyclone DDS both ways.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::json;
use thalweg_types::type_object::{Describing, Equivalence, TypeIdentifier};
use thalweg_types::{Type, idl};

use crate::host::{Addresses, Host};
use crate::program::Program;
use crate::thalweg;

/// A structure `library::Whole` of so many others with so many members each.
#[derive(Clone, Copy)]
struct LargeLibrary {
    parts: usize,
    members: usize,
}

/// Many objects in an answer, and one that is larger than any datagram.
const LIBRARIES: [LargeLibrary; 2] =
    [LargeLibrary { parts: 60, members: 40 }, LargeLibrary { parts: 1, members: 2500 }];

impl LargeLibrary {
    fn idl(self) -> String {
        let mut text = String::from("module library {\n");
        for part in 0..self.parts {
            let _ = writeln!(text, "  @final struct Part_{part} {{");
            for member in 0..self.members {
                let _ = writeln!(text, "    long member_with_a_long_name_{member};");
            }
            text.push_str("  };\n");
        }
        text.push_str("  @appendable struct Whole {\n    long id;\n");
        for part in 0..self.parts {
            let _ = writeln!(text, "    sequence<Part_{part}> part_{part};");
        }
        text.push_str("  };\n};\n");
        text
    }

    /// The file with it.
    fn file(self) -> PathBuf {
        let name = format!("library-{}-{}-{}.idl", self.parts, self.members, thalweg::domain());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, self.idl()).expect("the test's folder is writable");
        path
    }

    /// How the complete type of a text is named; its objects have more than 64 KB.
    #[track_caller]
    fn identifier(text: &str) -> TypeIdentifier {
        let types = idl::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let whole: &Type = types.find("library::Whole").expect("the type");
        let mut describing = Describing::new(Equivalence::Complete);
        let identifier = describing.identifier(whole).expect("described");
        let bytes: usize = describing.objects().iter().map(|(_, object)| object.len()).sum();
        assert!(bytes > 65_536, "{bytes} B");
        identifier
    }

    /// A writer of ours on the topic `whole`.
    fn start_ours(self, host: &Host) -> Program {
        let options = "--rate 5 --count 100000 --wait-matching 0 --qos representation=xcdr2";
        let file = self.file();
        let words = format!("topic pub whole {{\"id\":7}} --type library::Whole --idl {} {options}", file.display());
        let mut writer = thalweg::start(Some(host), 0, &words);
        writer.expect_text("offers RELIABLE");
        writer
    }

    /// Cyclone with a writer of the topic, or a reader that learns the type from a writer.
    fn start_cyclone(self, host: &Host, role: &str) -> Program {
        let python = std::env::var("THALWEG_PEER_PYTHON").expect("no other vendor's program: run `cargo xtask test`");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/cyclone-py/library.py");
        let mut command = host.command(&python);
        command.arg("-u").arg(script).arg(role).args([self.parts, self.members].map(|number| number.to_string()));
        let mut cyclone = Program::start("Cyclone", &command);
        cyclone.expect_text("ready");
        cyclone
    }
}

/// Two hosts whose link loses so many of a hundred packets each way; long datagrams cross it in single frames.
fn lossy(percent: u32) -> (Host, Host) {
    let (left, right) = Host::pair(1500, Addresses::Both);
    for host in [&left, &right] {
        host.send_one_by_one("eth0");
        host.drop_incoming(&format!("meta l4proto udp numgen random mod 100 < {percent}"));
    }
    (left, right)
}

/// Our tools on a host show the type of the topic `whole` as it is defined, and its values.
#[track_caller]
fn check_shown(library: LargeLibrary, host: &Host) {
    let said = thalweg::start(Some(host), 0, "topic type whole --patience 80").finish().well();
    let lines = said.lines.iter().filter(|line| !line.starts_with("! "));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    assert_eq!(LargeLibrary::identifier(&text), LargeLibrary::identifier(&library.idl()));
    let words = "topic echo whole --json --count 1 --patience 80 --timeout 85";
    let said = thalweg::start(Some(host), 0, words).finish().well();
    let value = said.objects().next().expect("a value");
    assert_eq!((&value["id"], &value["part_0"]), (&json!(7), &json!([])));
}

#[test]
fn large_types_of_ours_are_learned_across_a_link_that_loses_packets() {
    for (library, percent) in LIBRARIES.into_iter().zip([20, 10]) {
        let (left, right) = lossy(percent);
        let writer = library.start_ours(&left);
        check_shown(library, &right);
        writer.kill();
    }
}

#[test]
fn large_types_of_cyclone_are_learned_across_a_link_that_loses_packets() {
    for (library, percent) in LIBRARIES.into_iter().zip([20, 10]) {
        let (left, right) = lossy(percent);
        let writer = library.start_cyclone(&left, "pub");
        check_shown(library, &right);
        writer.kill();
    }
}

#[test]
fn cyclone_learns_large_types_of_ours_across_a_link_that_loses_packets() {
    for (library, percent) in LIBRARIES.into_iter().zip([20, 10]) {
        let (left, right) = lossy(percent);
        let writer = library.start_ours(&left);
        let mut reader = library.start_cyclone(&right, "sub");
        let line = reader.expect_text("\"event\": \"type\"");
        let told: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!((&told["parts"], &told["members"]), (&json!(library.parts), &json!(library.members)), "{line}");
        reader.expect_text("\"id\": 7");
        reader.kill();
        writer.kill();
    }
}
