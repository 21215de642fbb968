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

/// The checker of the CoAP plugtests: its class path. It is in no repository of archives, so its sources are compiled.
pub fn checker() -> Outcome<String> {
    let libraries = libraries()?;
    let folder = super::folder().join("californium/checker");
    let (sources, classes) = (folder.join("source"), folder.join("classes"));
    let class_path =
        [&classes, &sources.join(CERTIFICATES), &libraries.join("*")].map(|path| path.display().to_string());
    let class_path = class_path.join(":");
    if classes.join("org/eclipse/californium/plugtests/PlugtestChecker.class").exists() {
        return Ok(class_path);
    }
    if !sources.exists() {
        let origin = std::env::var("THALWEG_CALIFORNIUM_SOURCE").unwrap_or_else(|_| SOURCE.to_owned());
        println!("fetching Californium's sources from {origin}");
        let mut command = Command::new("git");
        command.args(["-c", "advice.detachedHead=false", "clone", "--quiet", "--depth", "1", "--branch", VERSION]);
        run(command.arg(origin).arg(&sources))?;
    }
    let path: Vec<String> = CHECKER_SOURCES.map(|folder| sources.join(folder).display().to_string()).to_vec();
    let own = sources.join(CHECKER_SOURCES[0]).join("org/eclipse/californium/plugtests");
    let cases = std::fs::read_dir(own.join("tests")).map_err(|error| format!("{}: {error}", own.display()))?;
    let cases = cases.flatten().map(|entry| entry.path());
    let mut command = Command::new("javac");
    command.args(["-nowarn", "-encoding", "UTF-8", "-cp"]).arg(format!("{}/*", libraries.display()));
    command.arg("-sourcepath").arg(path.join(":")).arg("-d").arg(&classes).arg(own.join("PlugtestChecker.java"));
    output(command.args(cases))?;
    Ok(class_path)
}

const SOURCE: &str = "https://github.com/eclipse-californium/californium.git";
const VERSION: &str = "3.14.0";
/// The checker, and the parts of the same repository that it is made of.
const CHECKER_SOURCES: [&str; 4] = [
    "demo-apps/cf-plugtest-checker/src/main/java",
    "cf-utils/cf-cli/src/main/java",
    "cf-utils/cf-unix-health/src/main/java",
    "cf-oscore/src/main/java",
];
/// Certificates that its command line reads in any case.
const CERTIFICATES: &str = "demo-certs/src/main/resources";
/// As `peers/coap-californium/pom.xml` says; the last that was added there.
const ARCHIVE: &str = "picocli-4.7.6.jar";
