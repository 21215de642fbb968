//! OpenSSH's server with keys of its own, and a client that knows it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host::Host;
use crate::program::Program;

/// Keys, a client's configuration, and servers that let the holder of the client's key in as the present user; all end when dropped.
pub struct Sshd {
    folder: PathBuf,
    servers: Vec<Program>,
}

impl Sshd {
    /// Makes the keys in `folder`.
    pub fn new(folder: &Path) -> Sshd {
        let sshd = Sshd { folder: folder.to_path_buf(), servers: Vec::new() };
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
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n",
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
