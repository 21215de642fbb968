//! Prometheus from Debian's packages, unpacked below `target/peers`: installed, it would start a service.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::workspace::{has, output};

const PACKAGE: &str = "prometheus";

/// The program; that of the system where there is one. It needs the C library alone.
pub fn prometheus() -> Outcome<PathBuf> {
    if has(PACKAGE) {
        return Ok(PathBuf::from(PACKAGE));
    }
    let folder = super::folder().join(PACKAGE);
    let program = folder.join("usr/bin/prometheus");
    if !program.exists() {
        unpack(&folder)?;
    }
    output(Command::new(&program).arg("--version"))?;
    Ok(program)
}

fn unpack(folder: &Path) -> Outcome {
    for program in ["apt-get", "dpkg"] {
        if !has(program) {
            return Err(format!("{PACKAGE} comes from Debian's packages, and there is no {program} to fetch it"));
        }
    }
    println!("fetching {PACKAGE} from Debian's packages");
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let download = || output(Command::new("apt-get").args(["download", "--quiet", PACKAGE]).current_dir(folder));
    if download().is_err() {
        output(Command::new("apt-get").args(["update", "--quiet"]))?;
        download()?;
    }
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let archives = entries.flatten().map(|entry| entry.path());
    for archive in archives.filter(|path| path.extension().is_some_and(|extension| extension == "deb")) {
        output(Command::new("dpkg").arg("--extract").arg(archive).arg(folder))?;
    }
    Ok(())
}
