//! CoAP servers with other middleware, which `thalweg lab run paper5` measures; `peers/README.md` describes their common interface.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{californium, debian_package, environment, install};
use crate::Outcome;
use crate::workspace::{output, root, run};

/// A server below `peers/`, in the folder `coap-<middleware>`.
pub struct CoapServer {
    /// Its name on the command line.
    pub name: &'static str,
    /// The name of its folder and of its program.
    program: &'static str,
    /// Makes the program in the given folder and says where it is.
    make: fn(source: &Path, folder: &Path) -> Outcome<PathBuf>,
}

/// All of them.
pub const SERVERS: [CoapServer; 4] = [
    CoapServer { name: "libcoap", program: "coap-libcoap", make: libcoap },
    CoapServer { name: "californium", program: "coap-californium", make: java },
    CoapServer { name: "aiocoap", program: "coap-aiocoap", make: python },
    CoapServer { name: "coap-rs", program: "coap-rs", make: rust },
];

impl CoapServer {
    /// Builds the program if it is not up to date, and returns where it is.
    pub fn build(&self) -> Outcome<PathBuf> {
        let folder = super::folder().join(self.program);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        (self.make)(&root().join("peers").join(self.program), &folder)
    }
}

/// Asks a server for its greeting once: shows that it works, not how fast.
pub fn check(program: &Path) -> Outcome<String> {
    let probe = UdpSocket::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = probe.local_addr().map_err(|error| error.to_string())?;
    drop(probe);
    let mut command = Command::new(program);
    command.args(["--bind", &address.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    let mut line = String::new();
    let heard = child.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
    let answered = match heard {
        Some(Ok(length)) if length > 0 => ask(address.port()),
        _ => Err("it ended before it served".to_owned()),
    };
    // It ends with its input; where it does not, it is killed.
    drop(child.stdin.take());
    std::thread::sleep(Duration::from_millis(100));
    let _ = child.kill();
    let _ = child.wait();
    answered.map(|()| "a GET of /request was answered".to_owned())
}

fn ask(port: u16) -> Outcome {
    let exchange = || {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        socket.send_to(GET_REQUEST, ("127.0.0.1", port))?;
        let mut answer = [0; 64];
        let length = socket.recv(&mut answer)?;
        Ok::<_, std::io::Error>(answer[..length].to_vec())
    };
    let answer = exchange().map_err(|error| format!("it did not answer: {error}"))?;
    if answer.ends_with(b"hello world") { Ok(()) } else { Err(format!("it answered {answer:02x?}")) }
}

/// libcoap without DTLS from the system's packages.
fn libcoap(source: &Path, folder: &Path) -> Outcome<PathBuf> {
    if !Path::new("/usr/include/coap3/coap.h").exists() {
        debian_package("libcoap3-dev")?;
    }
    let program = folder.join("coap-libcoap");
    let mut command = Command::new("cc");
    command.args(["-O2", "-Wall", "-Wextra", "-o"]).arg(&program).arg(source.join("server.c"));
    output(command.args(["-lcoap-3-notls", "-lpthread"]))?;
    Ok(program)
}

fn java(source: &Path, folder: &Path) -> Outcome<PathBuf> {
    let class_path = californium::compile(&[source.join("Server.java")], &folder.join("classes"))?;
    script(folder.join("coap-californium"), &format!("exec java -cp '{class_path}' Server \"$@\""))
}

/// A Python interpreter that has aiocoap.
pub fn aiocoap() -> Outcome<PathBuf> {
    let python = environment()?;
    if output(Command::new(&python).args(["-c", "import aiocoap"])).is_err() {
        install(&python, AIOCOAP)?;
    }
    Ok(python)
}

/// The same with CoAP over WebSocket.
pub fn aiocoap_with_web_sockets() -> Outcome<PathBuf> {
    let python = aiocoap()?;
    if output(Command::new(&python).args(["-c", "import websockets"])).is_err() {
        install(&python, WEB_SOCKETS)?;
    }
    Ok(python)
}

fn python(source: &Path, folder: &Path) -> Outcome<PathBuf> {
    let python = aiocoap()?;
    let server = source.join("server.py");
    script(folder.join("coap-aiocoap"), &format!("exec '{}' '{}' \"$@\"", python.display(), server.display()))
}

fn rust(source: &Path, folder: &Path) -> Outcome<PathBuf> {
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--locked", "--quiet"]).current_dir(source).env("CARGO_TARGET_DIR", folder);
    run(&mut command)?;
    Ok(folder.join("release/coap-rs"))
}

/// Writes a program of one shell command.
fn script(path: PathBuf, command: &str) -> Outcome<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(&path, format!("#!/bin/sh\n{command}\n"))
        .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

const AIOCOAP: &str = "aiocoap==0.4.17";
const WEB_SOCKETS: &str = "websockets==15.0.1";
/// NON GET /request, message ID 1.
const GET_REQUEST: &[u8] = b"\x50\x01\x00\x01\xb7request";
