//! Recordings that Foxglove's reader of MCAP reads and the decoders of viewers decode.

use std::path::Path;

use serde_json::{Value, json};

use super::decoders;
use crate::program::Program;
use crate::thalweg;

/// The messages of a file, each with what all decoders agree on.
#[track_caller]
fn messages(file: &Path) -> Vec<Value> {
    let mut command = decoders();
    let said = Program::start("Node.js", command.arg(file)).finish().well();
    let about = |message: Value| {
        assert!(
            message["foxglove"].get("value").is_some() && message["foxglove"] == message["lichtblick"],
            "{message:#}"
        );
        let names = ["topic", "schema", "encoding", "sequence"].map(|name| message[name].clone());
        json!([names, message["foxglove"]["value"]])
    };
    said.objects().map(about).collect()
}

const ROBOT: &str = "
module demo {
  enum Mode { IDLE, BUSY };
  @final struct Point { double x; double y; };
  @appendable struct Robot {
    @key long id;
    string<16> name;
    Mode mode;
    Point at;
    sequence<Point> path;
    short grid[2][3];
    @optional double load;
  };
};
";

#[test]
fn schemas_and_messages_of_a_recording_are_decoded_by_foxglove() {
    let (domain, folder) = (thalweg::domain(), Path::new(env!("CARGO_TARGET_TMPDIR")));
    let [idl, file] = ["idl", "mcap"].map(|ending| folder.join(format!("recorded-{}.{ending}", std::process::id())));
    std::fs::write(&idl, ROBOT).expect("the test's folder is writable");
    let _ = std::fs::remove_file(&file);
    let recorder = thalweg::start(None, domain, &format!("record --output {} --count 6", file.display()));
    let robot = json!({
        "id": 7, "name": "seven", "mode": "BUSY", "at": {"x": 1.5, "y": -2.25}, "path": [{"x": 0.5, "y": 0.25}],
        "grid": [[1, 2, 3], [4, 5, -6]], "load": 0.125
    });
    let robots = format!("topic pub robots {robot} --type demo::Robot --idl {} --count 2 --rate 20", idl.display());
    for words in [
        "pub rt/chatter hello world --count 2 --rate 20",
        "pub Square --type ShapeType RED,1,2,3 BLUE,-4,5,6 --count 2 --rate 20",
        &format!("{robots} --patience 80"),
    ] {
        thalweg::start(None, domain, words).finish().well();
    }
    recorder.finish().well();
    let got = messages(&file);
    for path in [&idl, &file] {
        let _ = std::fs::remove_file(path);
    }

    let mut as_number = robot;
    as_number["mode"] = json!(1);
    let shape = |color, x, y, size| json!({"color": color, "x": x, "y": y, "shapesize": size});
    let (text, square, robots) =
        (["/chatter", "std_msgs/msg/String"], ["Square", "ShapeType"], ["robots", "demo::Robot"]);
    let expected = [
        (text, "ros2msg", 1, json!({"data": "hello"})),
        (text, "ros2msg", 2, json!({"data": "world"})),
        (square, "omgidl", 1, shape("RED", 1, 2, 3)),
        (square, "omgidl", 2, shape("BLUE", -4, 5, 6)),
        (robots, "omgidl", 1, as_number.clone()),
        (robots, "omgidl", 2, as_number),
    ];
    let expected = expected
        .map(|([topic, schema], encoding, sequence, value)| json!([[topic, schema, encoding, sequence], value]));
    assert_eq!(got, expected);
}
