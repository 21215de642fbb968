//! Fast DDS from Debian 13's packages, unpacked below `target/peers` with the C and C++ libraries that they need.
//!
//! It installs nothing and needs no root: an older system keeps its own libraries.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::workspace::{has, output};

/// Debian 13 has Fast DDS 3.1.2.
const RELEASE: &str = "trixie main";

/// The signatures of Debian's archive.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

const PACKAGE: &str = "libfastdds-dev";

/// Folder in which the build finds Fast DDS.
pub fn environment() -> Outcome<Vec<(&'static str, OsString)>> {
    let folder = super::folder().join("fastdds");
    let root = folder.join("root");
    if !root.join("complete").exists() {
        unpack(&folder, &root)?;
    }
    Ok(vec![("FASTDDS_ROOT", root.into())])
}

fn unpack(folder: &Path, root: &Path) -> Outcome {
    for program in ["apt-get", "dpkg"] {
        if !has(program) {
            return Err(format!("Fast DDS comes from Debian's packages, and there is no {program} to fetch them"));
        }
    }
    if !Path::new(KEYS).exists() {
        return Err(format!("{KEYS} is missing: install debian-archive-keyring"));
    }
    let mirror = mirror()?;
    println!("fetching {PACKAGE} and its dependencies from {mirror} {RELEASE}");
    let archives = Apt::new(folder, &mirror)?.download()?;
    for archive in archives {
        output(Command::new("dpkg").arg("--extract").arg(archive).arg(root))?;
    }
    std::fs::write(root.join("complete"), "").map_err(|error| error.to_string())
}

/// This system's mirror of Debian's packages.
fn mirror() -> Outcome<String> {
    let format = ["indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages"];
    let list = output(Command::new("apt-get").args(format))?;
    let mirror = list.lines().find_map(|line| line.strip_prefix("Debian Debian "));
    mirror.map(str::to_owned).ok_or_else(|| "this system's apt-get knows no mirror of Debian".to_owned())
}

/// A package manager that knows one source and no installed packages.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn new(folder: &Path, mirror: &str) -> Outcome<Apt> {
        let write = |name: &str, text: String| std::fs::write(folder.join(name), text);
        for name in ["state/lists/partial", "cache/archives/partial"] {
            std::fs::create_dir_all(folder.join(name)).map_err(|error| error.to_string())?;
        }
        write("sources.list", format!("deb [signed-by={KEYS}] {mirror} {RELEASE}\n"))
            .map_err(|error| error.to_string())?;
        write("status", String::new()).map_err(|error| error.to_string())?;
        Ok(Apt { folder: folder.to_path_buf() })
    }

    fn command(&self) -> Command {
        let mut command = Command::new("apt-get");
        for (option, path) in [
            ("Dir::State", "state"),
            ("Dir::State::status", "status"),
            ("Dir::Cache", "cache"),
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::Etc::sourceparts", "none"),
        ] {
            command.arg("-o").arg(format!("{option}={}", self.folder.join(path).display()));
        }
        // As root it would change to a user that may not write here.
        let user = output(Command::new("id").args(["--user", "--name"])).unwrap_or_default();
        command.arg("-o").arg(format!("APT::Sandbox::User={}", user.trim()));
        command.args(["--quiet", "--yes"]);
        command
    }

    /// The archives of the package and of all that it needs.
    fn download(&self) -> Outcome<Vec<PathBuf>> {
        output(self.command().arg("update"))?;
        output(self.command().args(["--download-only", "--no-install-recommends", "install", PACKAGE]))?;
        let folder = std::fs::read_dir(self.folder.join("cache/archives")).map_err(|error| error.to_string())?;
        let archives = folder.flatten().map(|entry| entry.path());
        Ok(archives.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect())
    }
}
