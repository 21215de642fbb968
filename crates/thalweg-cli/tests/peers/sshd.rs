//! OpenSSH's server with keys of its own, and a client that knows it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use thalweg_host::{HostFiles, Task, TaskStat};

use crate::host::Host;
use crate::program::{PATIENCE, Program};

/// Keys, a client's configuration, and servers that let the holder of the client's key in as the present user; all end when dropped.
pub struct Sshd {
    folder: PathBuf,
    servers: Vec<Program>,
}

impl Sshd {
    /// Makes the keys in `folder`.
    pub fn new(folder: &Path) -> Sshd {
        let sshd = Sshd { folder: folder.to_path_buf(), servers: Vec::new() };
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_thalweg"), sshd.program()).expect("linked");
        for key in ["host_key", "user_key", "other_key"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]).arg(folder.join(key));
            assert!(keygen.status().expect("openssh-client is installed").success());
        }
        fs::copy(folder.join("user_key.pub"), folder.join("authorized_keys")).expect("copied");
        // A server that root starts wants this folder; its package makes it when its service starts.
        let _ = fs::create_dir("/run/sshd");
        sshd
    }

    /// Starts a server at this address and port, on the given host where there is one; the client knows it by `name` and trusts its key.
    pub fn serve(&mut self, host: Option<&Host>, (address, port): (&str, u16), name: &str) {
        let path = |name: &str| self.folder.join(name).to_str().expect("text").to_owned();
        let config = format!(
            "ListenAddress {address}\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             ClientAliveInterval 5\nClientAliveCountMax 2\n",
            path("host_key"),
            path("authorized_keys")
        );
        let file = path(&format!("{name}.sshd"));
        fs::write(&file, config).expect("written");
        let program = std::env::var("THALWEG_SSHD").expect("`cargo xtask test` names the server");
        let mut command = host.map_or_else(|| Command::new(&program), |host| host.command(&program));
        command.args(["-D", "-e", "-f", &file]);
        let mut server = Program::start("sshd", &command);
        server.expect_text("Server listening on");
        self.servers.push(server);
        let key = fs::read_to_string(path("host_key.pub")).expect("a key");
        self.append("known_hosts", &format!("[{address}]:{port} {key}"));
        self.client(name, "user_key", &format!("HostName {address}\nPort {port}"));
    }

    /// Adds a host to the client's configuration, with this key and these settings before those of all hosts.
    pub fn client(&self, name: &str, key: &str, settings: &str) {
        let path = |name: &str| self.folder.join(name).to_str().expect("text").to_owned();
        let common = format!(
            "IdentityFile {}\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile {}\nGlobalKnownHostsFile /dev/null",
            path(key),
            path("known_hosts")
        );
        self.append("ssh_config", &format!("Host {name}\n{settings}\n{common}\n"));
    }

    /// The program under a name of its own, by which its processes are found.
    pub fn program(&self) -> String {
        self.folder.join("thalweg").to_str().expect("text").to_owned()
    }

    /// The client's command.
    pub fn ssh(&self) -> String {
        format!("ssh -F {}", self.folder.join("ssh_config").display())
    }

    fn append(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, before + text).expect("written");
    }
}

/// So many agents that were started as `program`, and their workers, once each has two.
#[track_caller]
pub fn agents_at_work(program: &str, agents: usize) -> Vec<u32> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let all = processes(|id| command_of(id).first().is_some_and(|word| word == program));
        let workers: Vec<Vec<u32>> = all.iter().map(|agent| processes(|id| parent(id) == Some(*agent))).collect();
        if workers.iter().filter(|workers| workers.len() >= 2).count() == agents {
            return [all, workers.concat()].concat();
        }
        assert!(Instant::now() < deadline, "no {agents} agents with workers");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Living processes that fit.
pub fn processes(fits: impl Fn(u32) -> bool) -> Vec<u32> {
    HostFiles::here().processes().into_iter().filter(|id| !is_gone(*id) && fits(*id)).collect()
}

/// The words that a process was started with.
pub fn command_of(id: u32) -> Vec<String> {
    HostFiles::here().arguments(id)
}

/// The parent of a living process.
pub fn parent(id: u32) -> Option<u32> {
    TaskStat::read(&HostFiles::here(), Task::Process(id)).map(|stat| stat.parent)
}

fn is_gone(id: u32) -> bool {
    TaskStat::read(&HostFiles::here(), Task::Process(id)).is_none_or(|stat| stat.is_zombie())
}

/// Waits until these processes are gone, which has to happen within this time.
#[track_caller]
pub fn expect_gone(ids: &[u32], within: Duration) {
    let deadline = Instant::now() + within;
    while let Some(left) = ids.iter().find(|id| !is_gone(**id)) {
        assert!(Instant::now() < deadline, "left behind: {left} {:?}", command_of(*left));
        std::thread::sleep(Duration::from_millis(10));
    }
}
