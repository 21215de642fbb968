//! A client of views, and the decoders of viewers and Foxglove's reader of recordings for the tests, by the programs in `peers/foxglove`.

use std::ffi::OsString;
use std::process::Command;

use super::{TestPeer, environment, folder, install};
use crate::Outcome;
use crate::workspace::{has, output, run};

/// Both; without one of them, the tests of views are left out.
pub const PEER: TestPeer = TestPeer { name: "view", prepare };

fn prepare() -> Outcome<Vec<(&'static str, OsString)>> {
    let python = environment()?;
    if output(Command::new(&python).args(["-c", "import websockets"])).is_err() {
        install(&python, WEBSOCKETS)?;
        output(Command::new(&python).args(["-c", "import websockets"]))?;
    }
    let (folder, modules) = (folder().join("foxglove"), folder().join("foxglove/node_modules"));
    if !["@lichtblick/omgidl-serialization", "@mcap/core"].iter().all(|name| modules.join(name).exists()) {
        if !has("node") || !has("npm") {
            return Err("node or npm is missing: apt-get install nodejs npm".to_owned());
        }
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut command = Command::new("npm");
        run(command.args(["install", "--silent", "--no-save", "--prefix"]).arg(&folder).args(DECODERS))?;
    }
    Ok(vec![("THALWEG_WEBSOCKETS_PYTHON", python.into()), ("THALWEG_FOXGLOVE_NODE", modules.into())])
}

const WEBSOCKETS: &str = "websockets==15.0.1";

/// What Foxglove and Lichtblick read recordings and decode samples with.
const DECODERS: [&str; 9] = [
    "@mcap/core@2.2.2",
    "@foxglove/rosmsg@5.0.5",
    "@foxglove/rosmsg2-serialization@3.1.0",
    "@foxglove/omgidl-parser@1.1.0",
    "@foxglove/omgidl-serialization@1.0.3",
    "@lichtblick/rosmsg@1.0.0",
    "@lichtblick/rosmsg2-serialization@1.0.0",
    "@lichtblick/omgidl-parser@1.0.0",
    "@lichtblick/omgidl-serialization@1.0.0",
];
