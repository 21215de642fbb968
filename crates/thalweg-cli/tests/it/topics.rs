//! `topic echo` and `topic pub` of types that this program learns at run time.

use crate::program::{Running, command, tag};

const IDL: &str = "module demo { enum Mood { CALM, WILD };
  @appendable struct Part { double at[2]; Mood mood; };
  @appendable struct Whole { @key long id; string name; Part part; sequence<short> row; }; };";

/// What `topic echo` with these words prints of two samples that `topic pub` writes; only the writer has a file with the type.
fn echo(words: &[&str]) -> String {
    let tag = tag();
    let file = std::env::temp_dir().join(format!("thalweg-{tag}.idl"));
    std::fs::write(&file, IDL).expect("written");
    let path = file.display().to_string();
    let sample = r#"{"id":7,"name":"a,b","part":{"at":[1.5,2],"mood":"WILD"},"row":[1,2,3]}"#;
    let network = ["--domain-tag", &tag];
    let publish =
        ["topic", "pub", "things", sample, "--type", "demo::Whole", "--idl", &path, "--rate", "20", "--patience", "50"];
    let publisher = Running::start(command(&[&publish[..], &network].concat()));
    let echo = ["topic", "echo", "things", "--count", "2", "--timeout", "50", "--patience", "40"];
    let said = Running::start(command(&[&echo[..], words, &network].concat())).finish().expect_code(0);
    publisher.signal("INT");
    publisher.finish().expect_code(0);
    let _ = std::fs::remove_file(file);
    said.stdout
}

#[test]
fn rows_of_comma_separated_values_have_one_header() {
    let row = "7,\"a,b\",\"[1.5,2.0]\",WILD,\"[1,2,3]\"\n";
    assert_eq!(echo(&["--csv"]), format!("id,name,part.at,part.mood,row\n{row}{row}"));
}

#[test]
fn fields_are_columns_or_members_in_the_order_given() {
    assert_eq!(echo(&["--csv", "--field", "row[1]", "--field", "part.mood"]), "row[1],part.mood\n2,WILD\n2,WILD\n");
    let line = r#"{"part.mood":"WILD","id":7}"#;
    assert_eq!(echo(&["--json", "--field", "part.mood", "--field", "id"]), format!("{line}\n{line}\n"));
}

#[test]
fn what_a_filter_refuses_is_not_counted() {
    let said = echo(&["--flow", "--filter", "part.at[0] > 1 && name == 'a,b'", "--field", "name"]);
    assert_eq!(said, "\"a,b\"\n\"a,b\"\n");
}
