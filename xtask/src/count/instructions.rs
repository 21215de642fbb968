//! Instructions a sample of both sides together, now and at an earlier state of the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::workspace::{output, root, run as run_command, target};

const METHODS: [&str; 3] = ["immediate", "coalesce", "batch"];
/// What both numbers of samples cost, such as discovery, is not in their difference.
const SAMPLES: [u64; 2] = [2_000, 42_000];
/// The least of so many runs counts: timers and threads that are woken late add to the others.
const RUNS: usize = 5;
const FOLDER: &str = "count/instructions";

/// Counts those of the working tree and, in turns with it, those of `revision`.
pub fn run(revision: Option<&str>) -> Outcome {
    let folder = target().join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut states = vec![State::build("now", &root(), &folder)?];
    if let Some(revision) = revision {
        let earlier = Earlier::check_out(revision, folder.join("tree"))?;
        states.push(State::build("then", &earlier.0, &folder)?);
    }
    println!(
        "40 B, reliable, two participants of one process in lockstep, optimized without LTO; instructions of a sample:"
    );
    println!("{:<12} {:>10} {:>10} {:>9}", "method", "now", revision.unwrap_or(""), "");
    for method in METHODS {
        let mut least = vec![[u64::MAX; SAMPLES.len()]; states.len()];
        for _ in 0..RUNS {
            for (state, least) in states.iter().zip(&mut least) {
                for (samples, least) in SAMPLES.into_iter().zip(least) {
                    *least = state.instructions(method, samples)?.min(*least);
                }
            }
        }
        let each = |[few, many]: [u64; 2]| many.saturating_sub(few) as f64 / (SAMPLES[1] - SAMPLES[0]) as f64;
        let now = each(least[0]);
        match least.get(1).map(|then| each(*then)) {
            Some(then) => {
                println!("{method:<12} {now:>10.0} {then:>10.0} {:>+8.1} %", 100.0 * (now / then - 1.0));
            }
            None => println!("{method:<12} {now:>10.0}"),
        }
    }
    Ok(())
}

/// The program of the benchmark `lockstep`, built with the libraries of a state.
struct State {
    program: PathBuf,
    counts: PathBuf,
}

impl State {
    /// The program is that of the working tree in any case.
    fn build(name: &str, tree: &Path, folder: &Path) -> Outcome<State> {
        let own = folder.join(name);
        let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(&own).map_err(|error| failed(&own, error))?;
        let manifest = format!(
            "[package]\nname = \"lockstep-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[[bin]]\nname = \"lockstep\"\n\
             path = {:?}\n\n[dependencies]\nthalweg = {{ path = {:?} }}\n\n[workspace]\n",
            root().join("crates/thalweg/benches/lockstep.rs"),
            tree.join("crates/thalweg"),
        );
        fs::write(own.join("Cargo.toml"), manifest).map_err(|error| failed(&own, error))?;
        // The versions of the dependencies as that state has them.
        fs::copy(tree.join("Cargo.lock"), own.join("Cargo.lock")).map_err(|error| failed(tree, error))?;
        let build = own.join("target");
        let mut command = Command::new("cargo");
        command.args(["build", "--quiet", "--release", "--target-dir"]).arg(&build).current_dir(&own);
        // The crate rustix looks for the kernel's clock page where valgrind has none; the C library does not.
        run_command(command.env("RUSTFLAGS", "--cfg rustix_use_libc"))?;
        Ok(State { program: build.join("release/lockstep"), counts: own.join("callgrind") })
    }

    /// All instructions of the program for so many samples.
    fn instructions(&self, method: &str, samples: u64) -> Outcome<u64> {
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "--quiet", "--fair-sched=yes"])
            .arg(format!("--callgrind-out-file={}", self.counts.display()))
            .arg(&self.program)
            .args([method, &samples.to_string()]);
        // Valgrind tells each time that it does not know a system call, and the program then makes an older one.
        let said = self.counts.with_extension("log");
        let log = fs::File::create(&said).map_err(|error| format!("{}: {error}", said.display()))?;
        let status = command.stdin(Stdio::null()).stderr(log).status().map_err(|error| format!("valgrind: {error}"))?;
        if !status.success() {
            return Err(format!("{method}: {status}; its words are in {}", said.display()));
        }
        let text = fs::read_to_string(&self.counts).map_err(|error| format!("{}: {error}", self.counts.display()))?;
        total(&text).ok_or_else(|| format!("{} has no sum", self.counts.display()))
    }
}

/// The sum at the end of callgrind's format.
fn total(text: &str) -> Option<u64> {
    let sum = text.lines().find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")))?;
    sum.trim().parse().ok()
}

/// An earlier state of the repository beside this one, removed at the end.
struct Earlier(PathBuf);

impl Earlier {
    fn check_out(revision: &str, tree: PathBuf) -> Outcome<Earlier> {
        let earlier = Earlier(tree);
        earlier.remove();
        let mut command = git();
        output(command.args(["worktree", "add", "--force", "--detach"]).arg(&earlier.0).arg(revision))?;
        Ok(earlier)
    }

    fn remove(&self) {
        // There is none the first time.
        let _ = output(git().args(["worktree", "remove", "--force"]).arg(&self.0));
    }
}

impl Drop for Earlier {
    fn drop(&mut self) {
        self.remove();
    }
}

fn git() -> Command {
    let mut command = Command::new("git");
    command.current_dir(root());
    command
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_sum_is_found_at_either_place() {
        assert_eq!(total("version: 1\nsummary: 25784151\nfn=(1) a\n"), Some(25_784_151));
        assert_eq!(total("fn=(1) a\n1 2\n\ntotals: 17\n"), Some(17));
        assert_eq!(total("fn=(1) a\n"), None);
    }
}
