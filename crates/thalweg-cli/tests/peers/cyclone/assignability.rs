//! Which types match, as Cyclone DDS decides.

use std::path::Path;
use std::process::Command;

use crate::program::Program;
use crate::thalweg;

#[test]
fn the_table_of_assignable_types_is_what_cyclone_says() {
    let python = std::env::var("THALWEG_PEER_PYTHON").expect("no other vendor's program: run `cargo xtask test`");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = root.join("crates/thalweg-types/testdata/assignability/pairs.txt");
    let mut command = Command::new(python);
    command.arg(root.join("peers/cyclone-py/pairs.py")).arg(&table);
    command.env("PAIRS_DOMAIN", thalweg::domain().to_string());
    let said = Program::start("Cyclone", &command).finish().well();
    let expected = std::fs::read_to_string(&table).expect("the table");
    assert_eq!(said.lines, expected.lines().collect::<Vec<_>>());
}
