//! Where the endpoints of a scenario live, and what lies between them.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fields::{Field, ScenarioError};

/// Several hosts, and who lives where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Number of hosts.
    pub count: u32,
    /// What they are.
    pub kind: HostKind,
    /// How long the clocks of other machines are asked often before and after each run. Default 3 s.
    pub clock_span: Duration,
    /// Hosts that publishers take in turns; default all, from the first.
    pub publishers: Option<Vec<u32>>,
    /// Hosts that subscribers take in turns; default all, from the one after the last publisher's.
    pub subscribers: Option<Vec<u32>>,
}

/// What hosts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// Network namespaces of this machine.
    Namespaces,
    /// Machines.
    Machines(Vec<Machine>),
}

/// A machine that takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Machine {
    /// The controller's own.
    Here,
    /// One whose agent is started by `ssh`.
    Ssh(SshMachine),
}

/// A machine that `ssh` reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshMachine {
    /// What `ssh` takes as a destination: a name of its configuration, `user@host` or `ssh://user@host:port`.
    pub destination: String,
    /// Its address on the measured link. Default the one at which `ssh` reached it.
    pub address: Option<IpAddr>,
    /// The program there. Default the `thalweg` that the shell finds.
    pub program: Option<String>,
    /// Folder of the programs of other middleware there. Default where that program looks for them.
    pub peer_dir: Option<String>,
}

impl SshMachine {
    /// The machine at this destination, all else by default.
    pub fn new(destination: impl Into<String>) -> SshMachine {
        SshMachine { destination: destination.into(), address: None, program: None, peer_dir: None }
    }
}

impl HostPlan {
    /// So many network namespaces, endpoints in turns.
    pub fn namespaces(count: u32) -> HostPlan {
        HostPlan { count, kind: HostKind::Namespaces, clock_span: CLOCK_SPAN, publishers: None, subscribers: None }
    }

    /// The host of publisher `index`.
    pub fn of_publisher(&self, index: u32) -> u32 {
        in_turns(self.publishers.as_deref(), self.count, index, 0)
    }

    /// The host of subscriber `index` where there are so many publishers.
    pub fn of_subscriber(&self, publishers: u32, index: u32) -> u32 {
        let first = if self.publishers.is_some() { 0 } else { publishers };
        in_turns(self.subscribers.as_deref(), self.count, index, first)
    }
}

fn in_turns(hosts: Option<&[u32]>, count: u32, index: u32, first: u32) -> u32 {
    match hosts {
        Some(hosts) => hosts.get(index as usize % hosts.len().max(1)).copied().unwrap_or(0),
        None => (first + index) % count.max(1),
    }
}

/// What a host's link is like; all hosts have the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkPlan {
    /// Megabits a second in each direction. Default no limit.
    pub rate_mbit: Option<f64>,
    /// Largest packet in bytes. Default 1500.
    pub mtu_bytes: u32,
    /// How long a frame may wait for its turn at this rate before it is dropped. Default 50 ms.
    pub queue: Duration,
    /// Whether the bridge hands groups on only to hosts that asked for them (IGMP snooping). Default no.
    pub snooping: bool,
    /// What joins the links. Default the kernel's bridge.
    pub switch: Switch,
}

/// What joins the links of all hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Switch {
    /// The kernel's bridge.
    Bridge,
    /// A process of the lab, which impairs what it forwards.
    Relay(Impairment),
}

impl Default for LinkPlan {
    fn default() -> LinkPlan {
        let (mtu_bytes, queue) = (1500, Duration::from_millis(50));
        LinkPlan { rate_mbit: None, mtu_bytes, queue, snooping: false, switch: Switch::Bridge }
    }
}

/// What happens to the frames between two hosts, in each direction by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Impairment {
    /// Every frame takes so much longer.
    pub delay: Duration,
    /// Every frame takes up to so much longer still, evenly distributed; none overtakes another for it.
    pub jitter: Duration,
    /// Share of frames lost, each by itself (0 to 1).
    pub loss: f64,
    /// Losses that come in bursts, beside the others.
    pub bursts: Option<LossBursts>,
    /// Share of frames that the next one overtakes (0 to 1).
    pub reorder: f64,
    /// Share of frames that arrive twice (0 to 1).
    pub duplicate: f64,
    /// Frames gather and arrive together, so far apart. Default they do not.
    pub coalesce: Duration,
}

/// The model of Gilbert and Elliott: a good state without these losses and a bad one with them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossBursts {
    /// Chance that a frame in the good state begins a burst (0 to 1).
    pub enter: f64,
    /// Chance that a frame in the bad state ends it (0 to 1).
    pub leave: f64,
    /// Share of frames lost in the bad state (0 to 1).
    pub loss: f64,
}

/// `"netns:4"`, a list of machines, or a table that also says who lives where.
pub(super) fn read_hosts(field: Option<Field<'_>>) -> Result<Option<HostPlan>, ScenarioError> {
    let Some(field) = field else { return Ok(None) };
    if !field.is_table() {
        return read_on(&field).map(Some);
    }
    let hosts = field.table((&["on", "publishers", "subscribers", "clock_s"], &[]))?;
    let plan = read_on(&hosts.require("on")?)?;
    let count = plan.count;
    let list = |key| -> Result<Option<Vec<u32>>, ScenarioError> {
        let host = |one: &Field<'_>| one.integer(0, count - 1);
        hosts.maybe(key, |field| field.list(HOSTS_MAX as usize, host))
    };
    let clock_span = match hosts.get("clock_s") {
        Some(field) if plan.kind == HostKind::Namespaces => {
            return Err(field.error("hosts on this machine share its clock: leave it out, or name machines"));
        }
        Some(field) => Duration::from_secs_f64(field.number(0.2, 60.0)?),
        None => plan.clock_span,
    };
    Ok(Some(HostPlan { clock_span, publishers: list("publishers")?, subscribers: list("subscribers")?, ..plan }))
}

/// What the hosts are.
fn read_on(field: &Field<'_>) -> Result<HostPlan, ScenarioError> {
    let needed = |field: &Field<'_>| {
        field.error(format!(
            "\"netns:N\" is needed, N network namespaces from 2 to {HOSTS_MAX} on this machine, or a list of machines such as \
             [\"here\", \"ssh:user@lab2\"], each this machine or one that `ssh` reaches"
        ))
    };
    if let Some(count) = field.text().ok().and_then(|text| text.strip_prefix("netns:")) {
        let count = count.parse().ok().filter(|count| (2..=HOSTS_MAX).contains(count));
        return count.map(HostPlan::namespaces).ok_or_else(|| needed(field));
    }
    let machines = field.list(HOSTS_MAX as usize, |one| {
        if one.is_table() {
            return read_ssh(one).map(Machine::Ssh);
        }
        match one.text()? {
            "here" => Ok(Machine::Here),
            text => {
                let is_uri = text.starts_with("ssh://");
                let text = if is_uri { Some(text) } else { text.strip_prefix("ssh:") }.ok_or_else(|| needed(one))?;
                destination(one, text).map(|text| Machine::Ssh(SshMachine::new(text)))
            }
        }
    })?;
    let name = |machine: &Machine| match machine {
        Machine::Here => None,
        Machine::Ssh(machine) => Some(machine.destination.clone()),
    };
    let mut names: Vec<String> = machines.iter().filter_map(name).collect();
    names.sort();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(field.error(format!("the machine {} stands here twice", twice[0])));
    }
    Ok(HostPlan { kind: HostKind::Machines(machines.clone()), ..HostPlan::namespaces(machines.len() as u32) })
}

/// A machine with more than its destination.
fn read_ssh(field: &Field<'_>) -> Result<SshMachine, ScenarioError> {
    let machine = field.table((&["ssh", "address", "program", "peer_dir"], &[]))?;
    let ssh = machine.require("ssh")?;
    let path = |key| -> Result<Option<String>, ScenarioError> {
        machine.maybe(key, |field| word(field, field.text()?, "a path").map(str::to_owned))
    };
    let address = |field: Field<'_>| {
        let needed =
            || field.error("an IP address of that machine on the measured link is needed, such as \"10.0.0.2\"");
        field.text()?.parse::<IpAddr>().map_err(|_| needed())
    };
    Ok(SshMachine {
        destination: destination(&ssh, ssh.text()?)?.to_owned(),
        address: machine.get("address").map(address).transpose()?,
        program: path("program")?,
        peer_dir: path("peer_dir")?,
    })
}

/// A destination that `ssh` cannot take for an option, nor its parts for one of a program that it starts.
fn destination<'a>(field: &Field<'_>, text: &'a str) -> Result<&'a str, ScenarioError> {
    let needed = "what ssh takes as a destination, such as \"user@lab2\" or \"ssh://user@10.0.0.2:2222\"";
    let host = text.rsplit('@').next().unwrap_or(text);
    let user = text.strip_prefix("ssh://").unwrap_or(text);
    if [host, user].iter().any(|part| part.is_empty() || part.starts_with('-')) || text.contains(char::is_whitespace) {
        return Err(field.error(format!("{text:?} is no destination: {needed} is needed")));
    }
    word(field, text, needed)
}

/// Text that no program takes for an option, on one line.
fn word<'a>(field: &Field<'_>, text: &'a str, needed: &str) -> Result<&'a str, ScenarioError> {
    if text.is_empty() || text.starts_with('-') || text.contains(char::is_control) {
        return Err(field.error(format!("{needed} is needed, not {text:?}")));
    }
    Ok(text)
}

/// What the hosts' links are like.
pub(super) fn read_link(field: Option<Field<'_>>, hosts: Option<&HostPlan>) -> Result<LinkPlan, ScenarioError> {
    let default = LinkPlan::default();
    let Some(field) = field else { return Ok(default) };
    match hosts.map(|hosts| &hosts.kind) {
        None => return Err(field.error("hosts = \"netns:2\" or more is needed: on one host there is no link")),
        Some(HostKind::Machines(_)) => {
            return Err(field.error(
                "links between machines cannot be changed: leave [link] out, or use hosts = \"netns:2\" or more",
            ));
        }
        Some(HostKind::Namespaces) => {}
    }
    let link = field
        .table((&[&["switch", "snooping", "rate_mbit", "mtu_bytes", "queue_ms"][..], &IMPAIRMENTS].concat(), &[]))?;
    let share = |key| -> Result<f64, ScenarioError> { link.or(key, 0.0, percentage) };
    let time = |key| -> Result<Duration, ScenarioError> {
        link.or(key, Duration::ZERO, |one| one.number(0.0, 10e6).map(|us| Duration::from_secs_f64(us / 1e6)))
    };
    let impairment = Impairment {
        delay: time("delay_us")?,
        jitter: time("jitter_us")?,
        loss: share("loss_pct")?,
        bursts: link.maybe("loss_bursts", read_bursts)?,
        reorder: share("reorder_pct")?,
        duplicate: share("duplicate_pct")?,
        coalesce: time("coalesce_us")?,
    };
    let impaired = IMPAIRMENTS.iter().find_map(|key| link.get(key));
    let is_relay = link.or("switch", impaired.is_some(), read_switch)?;
    if let (Some(impaired), false) = (impaired, is_relay) {
        return Err(impaired.error("needs switch = \"relay\": a bridge only forwards"));
    }
    let snooping = link.get("snooping");
    let is_snooping = snooping.map_or(Ok(false), |one| one.truth())?;
    if let (Some(field), true) = (snooping, is_snooping && is_relay) {
        return Err(field.error("needs switch = \"bridge\": the relay hands every group to every host"));
    }
    Ok(LinkPlan {
        snooping: is_snooping,
        rate_mbit: link.maybe("rate_mbit", |one| one.number(0.1, 100_000.0))?,
        mtu_bytes: link.or("mtu_bytes", default.mtu_bytes, |one| one.integer(576, 9_000))?,
        queue: link.or("queue_ms", default.queue, |one| {
            one.number(1.0, 10_000.0).map(|ms| Duration::from_secs_f64(ms / 1e3))
        })?,
        switch: if is_relay { Switch::Relay(impairment) } else { Switch::Bridge },
    })
}

/// Whether the switch is the relay.
fn read_switch(field: &Field<'_>) -> Result<bool, ScenarioError> {
    if field.text()? == "routed" {
        return Err(field.error(
            "routed trees cannot be measured: datagrams to groups leave with a time to live of 1, which no router forwards, and the \
             kernel's multicast routing follows a daemon that the lab does not have; hosts are joined by one \"bridge\" or \"relay\"",
        ));
    }
    field.choice(&[("bridge", false), ("relay", true)])
}

fn read_bursts(field: &Field<'_>) -> Result<LossBursts, ScenarioError> {
    let bursts = field.table((&["enter_pct", "leave_pct", "loss_pct"], &[]))?;
    Ok(LossBursts {
        enter: percentage(&bursts.require("enter_pct")?)?,
        leave: percentage(&bursts.require("leave_pct")?)?,
        loss: bursts.or("loss_pct", 1.0, percentage)?,
    })
}

fn percentage(field: &Field<'_>) -> Result<f64, ScenarioError> {
    field.number(0.0, 100.0).map(|percent| percent / 100.0)
}

const CLOCK_SPAN: Duration = Duration::from_secs(3);
/// Keys that only the relay honours.
const IMPAIRMENTS: [&str; 7] =
    ["delay_us", "jitter_us", "loss_pct", "loss_bursts", "reorder_pct", "duplicate_pct", "coalesce_us"];
/// The kernel keeps 1,024 neighbours for all namespaces together, which about 30 hosts exhaust.
const HOSTS_MAX: u32 = 16;
