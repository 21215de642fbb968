//! Eclipse Californium from Maven Central, below `californium/lib` of the peers' folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::workspace::{has, output, root, run};

/// The folder of its archives, for the class path of Java programs (`<folder>/*`); fetched when it is missing.
pub fn libraries() -> Outcome<PathBuf> {
    let folder = super::folder().join("californium/lib");
    if folder.join(ARCHIVE).exists() {
        return Ok(folder);
    }
    for program in ["java", "javac", "mvn"] {
        if !has(program) {
            return Err(format!("{program} is missing: apt-get install default-jdk-headless maven"));
        }
    }
    println!("fetching Californium from Maven Central");
    let mut command = Command::new("mvn");
    command.args(["--quiet", "--batch-mode", "dependency:copy-dependencies"]);
    command.arg(format!("-DoutputDirectory={}", folder.display()));
    run(command.current_dir(root().join("peers/coap-californium")))?;
    if folder.join(ARCHIVE).exists() { Ok(folder) } else { Err(format!("Maven did not bring {ARCHIVE}")) }
}

/// Compiles the sources into `classes` and returns the class path of the program.
pub fn compile(sources: &[PathBuf], classes: &Path) -> Outcome<String> {
    let libraries = libraries()?;
    let mut command = Command::new("javac");
    command.arg("-cp").arg(format!("{}/*", libraries.display())).arg("-d").arg(classes).args(sources);
    output(&mut command)?;
    Ok(format!("{}:{}/*", classes.display(), libraries.display()))
}

/// As `peers/coap-californium/pom.xml` says.
const ARCHIVE: &str = "scandium-3.14.0.jar";
