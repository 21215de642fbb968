//! Hosts of our own: network namespaces, the links between them, and what happens on those links.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use thalweg_host::Namespace;

/// A network namespace with a loopback interface; removed with everything in it when dropped.
pub struct Host(Namespace);

/// Which addresses a link's ends get.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    Both,
    V6Only,
}

impl Host {
    /// Makes the host; its name says which process has to remove it.
    pub fn new(role: &str) -> Host {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Host(Namespace::new(&format!("{number}-{role}")).unwrap_or_else(|error| panic!("{error}")))
    }

    /// Two hosts, `.1` and `.2` of 10.77.0.0/24 and fd77:0::/64, joined by one link.
    pub fn pair(mtu: u32, addresses: Addresses) -> (Host, Host) {
        let (left, right) = (Host::new("left"), Host::new("right"));
        left.join(&right, 0, mtu, addresses);
        (left, right)
    }

    /// Joins the hosts by one more link, `eth<network>` on both, addresses 10.77.<network>.{1,2} and fd77:<network>::{1,2}.
    pub fn join(&self, other: &Host, network: u8, mtu: u32, addresses: Addresses) {
        let (link, mtu) = (format!("eth{network}"), mtu.to_string());
        run(&[
            "ip",
            "link",
            "add",
            &link,
            "netns",
            self.0.name(),
            "type",
            "veth",
            "peer",
            "name",
            &link,
            "netns",
            other.0.name(),
        ]);
        for (host, end) in [(self, 1), (other, 2)] {
            if addresses == Addresses::Both {
                run(&["ip", "-n", host.0.name(), "address", "add", &format!("10.77.{network}.{end}/24"), "dev", &link]);
            }
            run(&[
                "ip",
                "-n",
                host.0.name(),
                "address",
                "add",
                &format!("fd77:{network}::{end}/64"),
                "dev",
                &link,
                "nodad",
            ]);
            run(&["ip", "-n", host.0.name(), "link", "set", &link, "mtu", &mtu, "up"]);
        }
    }

    /// Splits segmented sends before they reach the interface, so that a capture shows the datagrams one by one.
    pub fn send_one_by_one(&self, link: &str) {
        run(&["ip", "-n", self.0.name(), "link", "set", link, "gso_max_segs", "1"]);
    }

    /// Drops what arrives here and fits the packet filter's words, for example `ip daddr 224.0.0.0/4`.
    pub fn drop_incoming(&self, words: &str) {
        let rules = format!(
            "add table inet t; add chain inet t in {{ type filter hook input priority 0; }}; add rule inet t in {words} drop"
        );
        let mut nft = self.command("nft");
        run_command(nft.arg(rules));
    }

    /// Drops what leaves here and fits the packet filter's words.
    pub fn drop_outgoing(&self, words: &str) {
        let rules = format!(
            "add table inet t; add chain inet t out {{ type filter hook output priority 0; }}; add rule inet t out {words} drop"
        );
        run_command(self.command("nft").arg(rules));
    }

    /// Counts from now on, by a name, the packets that come in and fit the packet filter's words; IP fragments one by one.
    pub fn count_incoming(&self, name: &str, words: &str) {
        let hook = "type filter hook prerouting priority -450;";
        let rules = format!(
            "add table inet c; add counter inet c {name}; add chain inet c in {{ {hook} }}; \
             add rule inet c in {words} counter name {name}"
        );
        run_command(self.command("nft").arg(rules));
    }

    /// How many packets [`Host::count_incoming`] has counted by this name.
    #[track_caller]
    pub fn counted(&self, name: &str) -> u64 {
        let output = self.command("nft").args(["list", "counter", "inet", "c", name]).output().expect("nftables");
        let text = String::from_utf8_lossy(&output.stdout);
        let mut words = text.split_whitespace().skip_while(|word| *word != "packets");
        words.nth(1).and_then(|number| number.parse().ok()).expect("nft tells a number of packets")
    }

    /// Frames that the link at this host would not take.
    #[track_caller]
    pub fn dropped_outgoing(&self, link: &str) -> u64 {
        let file = format!("/sys/class/net/{link}/statistics/tx_dropped");
        let output = self.command("cat").arg(file).output().expect("cat is installed");
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number of frames")
    }

    /// Limits what leaves by the link to a rate, behind a queue of so many bytes that drops what does not fit.
    pub fn limit(&self, link: &str, megabits: u32, queue_bytes: u32) {
        let filter = format!("qdisc add dev {link} root tbf rate {megabits}mbit burst 10000 limit {queue_bytes}");
        run_command(self.command("tc").args(filter.split_whitespace()));
    }

    /// Packets that have passed the limit of a link, and those that its queue has dropped.
    #[track_caller]
    pub fn passed(&self, link: &str) -> (u64, u64) {
        let output = self.command("tc").args(["-s", "qdisc", "show", "dev", link]).output().expect("iproute2");
        let text = String::from_utf8_lossy(&output.stdout);
        let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c == '(' || c == ',').collect();
        let before = |name| words.iter().position(|word| *word == name).and_then(|at| words[at - 1].parse().ok());
        let after = |name| words.iter().position(|word| *word == name).and_then(|at| words[at + 1].parse().ok());
        before("pkt").zip(after("dropped")).unwrap_or_else(|| panic!("tc tells packets: {text}"))
    }

    /// The largest packet that the link takes at this end.
    pub fn set_mtu(&self, link: &str, mtu: u32) {
        run(&["ip", "-n", self.0.name(), "link", "set", link, "mtu", &mtu.to_string()]);
    }

    /// Gives the link these addresses in place of all that it has, as when a host joins another network.
    pub fn move_to(&self, link: &str, addresses: &[&str]) {
        run(&["ip", "-n", self.0.name(), "address", "flush", "dev", link]);
        for address in addresses {
            let nodad: &[&str] = if address.contains(':') { &["nodad"] } else { &[] };
            run(&[&["ip", "-n", self.0.name(), "address", "add", address, "dev", link], nodad].concat());
        }
    }

    /// A link to nowhere comes up.
    pub fn plug_in(&self, link: &str, address: &str) {
        let name = self.0.name();
        let peer = format!("{link}-peer");
        run(&["ip", "-n", name, "link", "add", link, "type", "veth", "peer", "name", &peer]);
        run(&["ip", "-n", name, "address", "add", address, "dev", link]);
        [link, &peer].iter().for_each(|end| run(&["ip", "-n", name, "link", "set", end, "up"]));
    }

    /// A link goes.
    pub fn unplug(&self, link: &str) {
        run(&["ip", "-n", self.0.name(), "link", "delete", link]);
    }

    /// Passes on what is for others.
    pub fn forward(&self) {
        for name in ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"] {
            run_command(self.command("sysctl").args(["-qw", name]));
        }
    }

    /// Reaches a network by way of a router.
    pub fn route(&self, network: &str, via: &str) {
        run(&["ip", "-n", self.0.name(), "route", "add", network, "via", via]);
    }

    /// Sends what is for groups of IPv4 by this link.
    pub fn route_groups(&self, link: &str) {
        run(&["ip", "-n", self.0.name(), "route", "add", "224.0.0.0/4", "dev", link]);
    }

    /// Drops nothing any more.
    pub fn accept_incoming(&self) {
        run_command(self.command("nft").args(["flush", "ruleset"]));
    }

    /// A command that runs on this host.
    pub fn command(&self, program: &str) -> Command {
        self.0.command(program)
    }
}

#[track_caller]
fn run(words: &[&str]) {
    let (program, arguments) = words.split_first().expect("a program");
    run_command(Command::new(program).args(arguments));
}

#[track_caller]
fn run_command(command: &mut Command) {
    let output = command.output().expect("iproute2 and nftables are installed: run `cargo xtask test`");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
