//! `thalweg lab top`: watches a run directory.

use std::io::{IsTerminal, stdout};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use thalweg_lab::directories::RunWatcher;

use super::laboratory::from_lab;
use super::study::ScenarioOptions;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_either, print_line};
use crate::screen::Screen;

/// Options of `lab top`.
#[derive(Args, Debug)]
pub struct TopOptions {
    /// The directory that `lab run FILE` makes its runs in.
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,

    /// Show it once and end (default: follow it; where the output is no terminal, a line whenever something changed).
    #[arg(long)]
    pub once: bool,

    /// Print one JSON object instead of a screen; needs --once (default: a screen).
    #[arg(long, requires = "once")]
    pub json: bool,
}

/// Shows the directory until its runs are over.
///
/// # Errors
/// It is no run directory, or the output cannot be written; an interruption is none.
pub fn run(options: &TopOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut watcher = RunWatcher::new(&options.directory).map_err(from_lab)?;
    let is_screen = stdout().is_terminal() && !options.once;
    let screen = is_screen.then(Screen::open);
    let mut told = String::new();
    loop {
        let snapshot = watcher.look().map_err(from_lab)?;
        match &screen {
            Some(screen) => screen.show(&snapshot.to_text())?,
            None if options.once => return print_either(options.json, &snapshot, snapshot.to_text().trim_end()),
            None => {
                let line = snapshot.to_line();
                // A line that only counts seconds is no news.
                let news = line.rsplit_once(", ").map_or(line.as_str(), |(news, _)| news).to_owned();
                if news != told {
                    print_line(&line)?;
                    told = news;
                }
            }
        }
        if snapshot.is_over() {
            drop(screen);
            return if is_screen { print_line(snapshot.to_text().trim_end()) } else { Ok(()) };
        }
        let next = Instant::now() + PERIOD;
        while Instant::now() < next {
            if interrupt.came() {
                return Ok(());
            }
            std::thread::sleep(LOOK_PERIOD);
        }
    }
}

/// Makes the runs of a scenario in a process of its own, shows them, and says in the end what that process said.
///
/// # Errors
/// As `lab run`.
pub fn run_live(options: &ScenarioOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let file = options.load()?;
    let out = options.out.clone().unwrap_or_else(|| PathBuf::from(file.name()));
    let program = std::env::current_exe().map_err(Failure::from_cause)?;
    let mut command = Command::new(program);
    command.args(["lab", "run"]).arg(options.file()).arg("--out").arg(&out);
    if let Some(seed) = options.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    if let Some(program) = &options.against {
        command.arg("--against").arg(program);
    }
    if let Some(folder) = &options.peer_dir {
        command.arg("--peer-dir").arg(folder);
    }
    if let Some(ssh) = &options.ssh {
        command.arg("--ssh").arg(ssh);
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.map_err(Failure::from_cause)?;
    // Ctrl-C reaches both processes; this one goes on until the other has put its directory in order.
    let runs = std::thread::spawn(move || child.wait_with_output());
    let screen = stdout().is_terminal().then(Screen::open);
    let mut watcher = None;
    while !runs.is_finished() {
        // The directory appears with the first run.
        watcher = watcher.or_else(|| RunWatcher::new(&out).ok());
        let snapshot = watcher.as_mut().and_then(|watcher| watcher.look().ok());
        if let (Some(screen), Some(snapshot)) = (&screen, snapshot) {
            let ending = if interrupt.came() { "interrupted; the present run ends first\n" } else { "" };
            screen.show(&format!("{}{ending}", snapshot.to_text()))?;
        }
        std::thread::sleep(if screen.is_some() { PERIOD } else { LOOK_PERIOD });
    }
    drop(screen);
    let said = runs.join().map_err(|_| Failure::Failed("waiting for the runs failed".to_owned()))?;
    let said = said.map_err(Failure::from_cause)?;
    let (output, errors) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    if !output.is_empty() {
        print_line(output.trim_end())?;
    }
    let reason = errors.lines().last().unwrap_or_default();
    let reason = reason.strip_prefix("error: ").unwrap_or(reason).to_owned();
    match said.status.code() {
        Some(0) => Ok(()),
        Some(2) => Err(Failure::Usage(reason)),
        Some(130) => Err(Failure::Interrupted),
        Some(_) => Err(Failure::Failed(reason)),
        None => Err(Failure::Failed(format!("the process that made the runs was killed: {}", said.status))),
    }
}

const PERIOD: Duration = Duration::from_secs(1);
const LOOK_PERIOD: Duration = Duration::from_millis(50);
