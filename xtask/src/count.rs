//! Locks, clock reads, allocations and system calls a sample: an unoptimised build under callgrind, whose functions are all still there
//! to be counted. Also measures the cost of a writer's work with one reader and with a thousand.

mod instructions;

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::workspace::{cargo, has, run as run_command, target};

/// Counts the costs of a sample of 256 B on each side, by the given methods; or those of many endpoints, participants, readers or
/// instances, or of types that are described; or those of the codec for types that are known at run time.
pub fn run(arguments: &[String]) -> Outcome {
    match arguments.first().map(String::as_str) {
        Some(CROWD_PAIRS | CROWD_PARTICIPANTS) => return bench("thalweg", "crowd", arguments),
        Some("types") => return bench("thalweg", "types", arguments),
        Some("instances") => return bench("thalweg", "instances", &[]),
        Some("readers") => return bench("thalweg-rtps", "readers", &[]),
        Some("codec") => return bench("thalweg-types", "codec", &[]),
        _ => {}
    }
    if !has("valgrind") {
        return Err("counting needs callgrind: install valgrind".to_owned());
    }
    if arguments.first().is_some_and(|word| word == "instructions") {
        return instructions::run(arguments.get(1).map(String::as_str));
    }
    let methods: Vec<&str> =
        if arguments.is_empty() { vec!["batch"] } else { arguments.iter().map(String::as_str).collect() };
    let folder = target().join("count");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut build = cargo(&["build", "--quiet", "--package", "thalweg-cli", "--target-dir"]);
    // The crate rustix looks for the kernel's clock page where valgrind has none; the C library does not.
    run_command(build.arg(&folder).env("RUSTFLAGS", "--cfg rustix_use_libc"))?;
    let program = folder.join("debug/thalweg");
    println!("256 B, reliable, loopback, two processes, unoptimised; costs of a sample on each side:");
    println!(
        "{:<12} {:<7} {:>7} {:>12} {:>12} {:>13}",
        "method", "side", "locks", "clock reads", "allocations", "system calls"
    );
    for method in methods {
        let few = measure(&program, &folder, method, SAMPLES_FEW)?;
        let many = measure(&program, &folder, method, SAMPLES_MANY)?;
        // Work that both do once, such as discovery, is not in the difference.
        let samples = Some(many[0].writes().saturating_sub(few[0].writes())).filter(|samples| *samples > 0);
        let samples = samples.ok_or_else(|| format!("{method}: no calls of {WRITE} counted"))?;
        for (index, side) in ["writer", "reader"].into_iter().enumerate() {
            let counts = many[index].counts().into_iter().zip(few[index].counts());
            let [locks, clocks, allocations, system_calls] =
                each(counts.map(|(many, few)| (many as f64 - few as f64) / samples as f64))?;
            println!("{method:<12} {side:<7} {locks:>7.3} {clocks:>12.3} {allocations:>12.3} {system_calls:>13.3}");
        }
    }
    Ok(())
}

fn bench(package: &str, name: &str, arguments: &[String]) -> Outcome {
    let mut command = cargo(&["bench", "--quiet", "--package", package, "--bench", name, "--"]);
    run_command(command.args(arguments))
}

fn each(values: impl Iterator<Item = f64>) -> Outcome<[f64; 4]> {
    values.collect::<Vec<_>>().try_into().map_err(|_| "there are four kinds of counts".to_owned())
}

/// The calls of the writing and of the reading process.
fn measure(program: &Path, folder: &Path, method: &str, samples: u64) -> Outcome<[Calls; 2]> {
    let name = |role: &str, kind: &str| folder.join(format!("{method}-{role}-{samples}.{kind}"));
    let start = |role: &str, rest: &[&str]| -> Outcome<Child> {
        let mut command = Command::new("valgrind");
        let file = name(role, "callgrind");
        command.args(["--tool=callgrind", "--quiet"]).arg(format!("--callgrind-out-file={}", file.display()));
        command
            .arg(program)
            .args(["perf", "throughput", "--size", "256", "--role", role, "--domain", DOMAIN])
            .args(rest);
        // Valgrind tells each time that it does not know a system call, and the program then makes an older one.
        let log = name(role, "log");
        let log = std::fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().map_err(|error| format!("valgrind: {error}"))
    };
    let samples = samples.to_string();
    let mut orders = vec!["--method", method, "--count", &samples];
    if COLLECTING.contains(&method) {
        // Slowed down fifty times, a writer would otherwise flush its samples long before a datagram is full.
        orders.extend(["--flush-delay", "1s"]);
    }
    let mut reader = start("sub", &[])?;
    let mut writer = start("pub", &orders)?;
    let ended = [wait(&mut writer, "writer"), wait(&mut reader, "reader")];
    ended.into_iter().collect::<Outcome>()?;
    Ok([Calls::read(&name("pub", "callgrind"))?, Calls::read(&name("sub", "callgrind"))?])
}

/// Waits for the end of a process, which is killed when it takes too long.
fn wait(child: &mut Child, what: &str) -> Outcome {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait().map_err(|error| format!("{what}: {error}"))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("the {what} failed: {status}; its words are in target/count")),
            None if Instant::now() > deadline => {
                child.kill().and_then(|()| child.wait()).map_err(|error| format!("{what}: {error}"))?;
                return Err(format!("the {what} did not end within {} s and was killed", PATIENCE.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Calls between functions: how often the first called the second.
struct Calls(HashMap<(String, String), u64>);

impl Calls {
    fn read(file: &Path) -> Outcome<Calls> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Calls::parse(&text))
    }

    /// Calls in callgrind's own format: `fn=(id) name` begins a caller, `cfn=(id) name` names whom the next `calls=` line counts; a
    /// name stands at the first use of its id.
    fn parse(text: &str) -> Calls {
        let mut names: HashMap<String, String> = HashMap::new();
        let mut name_of = |text: &str| {
            let (id, name) = text.split_once(' ').unwrap_or((text, ""));
            if !name.is_empty() {
                // A recursive function has its depth behind its name, one of a library its version.
                let name = name.rsplit_once('\'').map_or(name, |(name, _)| name);
                let name = name.split_once("@@").map_or(name, |(name, _)| name);
                names.insert(id.to_owned(), name.to_owned());
            }
            names.get(id).cloned().unwrap_or_default()
        };
        let mut calls: HashMap<(String, String), u64> = HashMap::new();
        let (mut caller, mut callee) = (String::new(), String::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("fn=") {
                caller = name_of(rest);
            } else if let Some(rest) = line.strip_prefix("cfn=") {
                callee = name_of(rest);
            } else if let Some(rest) = line.strip_prefix("calls=") {
                let count = rest.split(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
                *calls.entry((caller.clone(), callee.clone())).or_default() += count;
            }
        }
        Calls(calls)
    }

    fn calls_of(&self, is_meant: impl Fn(&str) -> bool) -> u64 {
        self.0.iter().filter(|((_, callee), _)| is_meant(callee)).map(|(_, count)| count).sum()
    }

    /// Samples written, warm-up included.
    fn writes(&self) -> u64 {
        self.calls_of(|name| name.ends_with(WRITE))
    }

    /// Locks, clock reads, allocations, system calls.
    fn counts(&self) -> [u64; 4] {
        [
            self.locks(),
            self.clock_reads(),
            self.calls_of(|name| ALLOCATIONS.contains(&name)),
            self.calls_of(|name| SYSTEM_CALLS.contains(&name)),
        ]
    }

    /// Every lock of the standard library but those of the measuring program itself.
    fn locks(&self) -> u64 {
        self.not_of_the_lab(&LOCKS)
    }

    /// Without those of the measuring program itself.
    fn clock_reads(&self) -> u64 {
        self.not_of_the_lab(&CLOCKS)
    }

    fn not_of_the_lab(&self, ends: &[&str]) -> u64 {
        let meant = self.0.iter().filter(|((caller, callee), _)| {
            !caller.contains("thalweg_lab") && ends.iter().any(|end| callee.ends_with(end))
        });
        meant.map(|(_, count)| count).sum()
    }
}

const CROWD_PAIRS: &str = "pairs";
const CROWD_PARTICIPANTS: &str = "participants";
/// Methods that wait for more samples.
const COLLECTING: [&str; 2] = ["batch", "coalesce"];
const SAMPLES_FEW: u64 = 2_000;
const SAMPLES_MANY: u64 = 12_000;
/// Apart from the domains of anything else on the machine.
const DOMAIN: &str = "219";
const PATIENCE: Duration = Duration::from_secs(300);
/// Functions that the measuring program calls once for each sample.
const WRITE: &str = "DataWriter<T>::write";
const LOCKS: [&str; 5] =
    ["Mutex<T>::lock", "Mutex<T>::try_lock", "RwLock<T>::read", "RwLock<T>::write", "ReentrantLock<T>::lock"];
const CLOCKS: [&str; 3] = ["std::time::Instant::now", "std::time::SystemTime::now", "thalweg_transport::clock::now"];
const ALLOCATIONS: [&str; 5] = ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"];
/// The C library's wrappers of system calls of a participant while samples flow; the standard library waits for a lock by `syscall`.
const SYSTEM_CALLS: [&str; 12] = [
    "sendmsg",
    "sendmmsg",
    "sendto",
    "recvmsg",
    "recvmmsg",
    "recvfrom",
    "epoll_wait",
    "epoll_pwait2",
    "timerfd_settime",
    "read",
    "write",
    "syscall",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_at_their_first_use_and_calls_add_up() {
        let text = "fn=(1) a::main\n16 5\ncfn=(2) std::sync::poison::mutex::Mutex<T>::lock\ncalls=3 0\n17 30\n\
                    fn=(3) b\ncfn=(2)\ncalls=4 0\n1 2\ncfn=(4) malloc@@GLIBC_2.2.5'2\ncalls=1 0\n1 1\n";
        let calls = Calls::parse(text);
        assert_eq!(calls.locks(), 7);
        assert_eq!(calls.calls_of(|name| name == "malloc"), 1);
    }

    #[test]
    fn the_measuring_program_does_not_count() {
        let text = "fn=(1) thalweg_lab::perf::stream\ncfn=(2) std::time::Instant::now\ncalls=3 0\n1 1\n\
                    fn=(4) thalweg::runtime::turn\ncfn=(2)\ncalls=5 0\n1 1\n";
        assert_eq!(Calls::parse(text).clock_reads(), 5);
    }
}
