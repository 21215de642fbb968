//! Programs with other vendors' middleware, and the tools that look at our packets.

mod burst;
mod californium;
mod check;
mod coap;
mod coap_tests;
mod fastdds;
mod foxglove;
mod programs;
mod prometheus;
mod video_tests;

use burst::Burst;
pub use coap_tests::PEERS as COAP_PEERS;
pub use foxglove::PEER as FOXGLOVE;
pub use programs::{CYCLONE, DUST, FASTDDS, RUSTDDS, run};
pub use prometheus::prometheus;
pub use video_tests::PEERS as VIDEO_PEERS;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::workspace::{has, is_root, output, root, target};

/// One of the programs that a suite meets; where it is not to be had, its own tests are left out.
pub struct TestPeer {
    /// The name of its tests.
    pub name: &'static str,
    /// Sets it up and names it in environment variables.
    pub prepare: fn() -> Outcome<Vec<(&'static str, OsString)>>,
}

/// Folder of the peers: `THALWEG_PEERS`, or `peers` in cargo's build folder.
fn folder() -> PathBuf {
    std::env::var_os("THALWEG_PEERS").map_or_else(|| target().join("peers"), |path| root().join(path))
}

/// Eclipse Cyclone DDS for Python: the peer of the interoperability tests.
const CYCLONE_PYTHON: &str = "cyclonedds==11.0.1";

/// The C parser that builds the bindings of the Cyclone performance program, without a system package.
const LIBCLANG: &str = "libclang==18.1.1";

/// The peer of the tests of protected requests.
const AIOCOAP_WITH_OSCORE: &str = "aiocoap[oscore]==0.4.17";

/// The peers of the tests of recordings.
const MCAP: &str = "mcap==1.6.0";
const MCAP_ROS2: &str = "mcap-ros2-support==0.6.0";
const ROSBAGS: &str = "rosbags==0.11.9";

/// A Python interpreter that has Cyclone DDS.
pub fn cyclone_python() -> Outcome<PathBuf> {
    let python = environment()?;
    if output(Command::new(&python).args(["-c", "import cyclonedds.core"])).is_err() {
        install(&python, CYCLONE_PYTHON)?;
        output(Command::new(&python).args(["-c", "import cyclonedds.core"]))?;
    }
    Ok(python)
}

/// A Python interpreter that has aiocoap with the dependencies of its OSCORE.
pub fn aiocoap_with_oscore() -> Outcome<PathBuf> {
    let python = environment()?;
    let modules = ["-c", "import aiocoap, cbor2, cryptography, filelock, lakers"];
    if output(Command::new(&python).args(modules)).is_err() {
        install(&python, AIOCOAP_WITH_OSCORE)?;
        output(Command::new(&python).args(modules))?;
    }
    Ok(python)
}

/// A Python interpreter that reads and writes recordings of ROS 2.
pub fn mcap_python() -> Outcome<PathBuf> {
    let python = environment()?;
    if output(Command::new(&python).args(["-c", "import mcap_ros2, rosbags"])).is_err() {
        install(&python, MCAP)?;
        install(&python, MCAP_ROS2)?;
        install(&python, ROSBAGS)?;
        output(Command::new(&python).args(["-c", "import mcap_ros2, rosbags"]))?;
    }
    Ok(python)
}

/// The packet dissector; installed from Debian's packages when it is missing and we are root.
pub fn tshark() -> Outcome<PathBuf> {
    if !has("tshark") {
        debian_package("tshark")?;
    }
    Ok(PathBuf::from("tshark"))
}

/// OpenSSH's server, which tests start by themselves with keys of their own; installed like the dissector, with its client.
pub fn sshd() -> Outcome<PathBuf> {
    if !has("ssh") || !has("ssh-keygen") {
        debian_package("openssh-client")?;
    }
    // Not all users search the folders of servers.
    let known = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"];
    let find = || known.iter().map(PathBuf::from).find(|path| path.exists());
    if let Some(found) = find() {
        return Ok(found);
    }
    if Path::new("/run/systemd/system").exists() {
        return Err("sshd is missing, and its package would start a service: apt-get install openssh-server".to_owned());
    }
    debian_package("openssh-server")?;
    find().ok_or_else(|| format!("openssh-server brought none of {}", known.join(", ")))
}

/// A browser that needs no screen; installed like the dissector.
pub fn browser() -> Outcome<PathBuf> {
    let known = ["chromium-headless-shell", "chromium", "google-chrome"];
    if let Some(found) = known.into_iter().find(|program| has(program)) {
        return Ok(PathBuf::from(found));
    }
    debian_package(known[0])?;
    Ok(PathBuf::from(known[0]))
}

/// The packet filter with which tests lose and block packets; installed like the dissector.
pub fn packet_filter() -> Outcome {
    if has("nft") { Ok(()) } else { debian_package("nftables") }
}

/// The probe that ours is compared with; installed like the dissector.
pub fn iperf3() -> Outcome {
    if has("iperf3") { Ok(()) } else { debian_package("iperf3") }
}

/// The shells beside bash; installed like the dissector.
pub fn shells() -> Outcome {
    ["zsh", "fish"].into_iter().filter(|name| !has(name)).try_for_each(debian_package)
}

/// The programs with Fast DDS and RustDDS; built at the same time, once.
pub fn vendors() -> Outcome<(PathBuf, PathBuf)> {
    std::thread::scope(|scope| {
        let fastdds = scope.spawn(|| FASTDDS.build());
        let rustdds = RUSTDDS.build();
        let fastdds = fastdds.join().map_err(|_| "the build of Fast DDS's program failed".to_owned())?;
        Ok((fastdds?, rustdds?))
    })
}

/// Folder of the C parser of [`LIBCLANG`]; installed when it is missing.
fn libclang() -> Outcome<PathBuf> {
    let python = environment()?;
    let folder = ["-c", "import clang, os; print(os.path.join(os.path.dirname(clang.__file__), 'native'))"];
    if output(Command::new(&python).args(folder)).is_err() {
        install(&python, LIBCLANG)?;
    }
    output(Command::new(&python).args(folder)).map(|folder| PathBuf::from(folder.trim()))
}

/// The virtual environment below `target/peers`, made on first use; returns its interpreter.
fn environment() -> Outcome<PathBuf> {
    let folder = folder().join("venv");
    let python = folder.join("bin/python");
    if output(Command::new(&python).args(["-m", "pip", "--version"])).is_ok() {
        return Ok(python);
    }
    println!("setting up {}", folder.display());
    if create(&folder).is_err() {
        debian_package("python3-venv")?;
        create(&folder)?;
    }
    Ok(python)
}

fn create(folder: &Path) -> Outcome<String> {
    output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))
}

fn install(python: &Path, package: &str) -> Outcome {
    println!("installing {package} from PyPI");
    output(Command::new(python).args(["-m", "pip", "install", "--quiet", package])).map(drop)
}

fn debian_package(name: &str) -> Outcome {
    debian_packages(&[name])
}

fn debian_packages(names: &[&str]) -> Outcome {
    let list = names.join(" ");
    if !is_root() || !has("apt-get") {
        return Err(format!("{list} is missing and only root can install it: apt-get install {list}"));
    }
    println!("installing {list} from Debian's packages");
    let install = || {
        let mut command = Command::new("apt-get");
        command.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(names);
        output(command.env("DEBIAN_FRONTEND", "noninteractive"))
    };
    if install().is_err() {
        output(Command::new("apt-get").args(["update", "--quiet"]))?;
        install()?;
    }
    Ok(())
}
