//! What the machine computes beside a picture.

use std::path::Path;
use std::process::{Command, Stdio};

use super::cell::OtherWork;
use super::peer::said;
use super::run::TemporaryFolder;
use crate::error::LabError;
use crate::process::{Supervised, tie_to_input};

/// Programs at the priority of the picture's ends; they end when this is dropped, and when this process dies.
pub(super) struct OtherPrograms {
    _programs: Vec<Supervised>,
    /// What compilers read and write. It goes after them.
    _folder: Option<TemporaryFolder>,
}

impl OtherPrograms {
    /// Starts them, one for each of `cpus` processors.
    ///
    /// # Errors
    /// A program cannot be started, or the compiler fails.
    pub(super) fn start(work: OtherWork, cpus: usize) -> Result<OtherPrograms, LabError> {
        let folder = match work {
            OtherWork::Compiler => Some(compilable()?),
            OtherWork::None | OtherWork::EachCpu => None,
        };
        let start = |number: usize| {
            let mut shell = Command::new("/bin/sh");
            match &folder {
                Some(folder) => {
                    let object = format!("{number}.o");
                    tie_to_input(in_folder(&mut shell, &folder.0), "/bin/sh", ["-c", COMPILING, "sh", &object]);
                }
                None => tie_to_input(&mut shell, "/bin/sh", ["-c", "while :; do :; done"]),
            }
            Supervised::spawn(shell, &[], "busy program")
        };
        let count = if work == OtherWork::None { 0 } else { cpus };
        let programs = (0..count).map(start).collect::<Result<_, _>>()?;
        Ok(OtherPrograms { _programs: programs, _folder: folder })
    }
}

/// The version of the compiler of C; `None` where there is none that compiles.
pub(super) fn compiler() -> Option<String> {
    let version = said("cc", &["--version"]).ok()?.lines().next()?.to_owned();
    // Without an assembler it compiles nothing.
    compilable().ok()?;
    Some(version)
}

/// A folder with a source that has been compiled once.
fn compilable() -> Result<TemporaryFolder, LabError> {
    let folder = TemporaryFolder::new()?;
    std::fs::write(folder.0.join("source.c"), source()).map_err(LabError::here)?;
    let mut once = Command::new("cc");
    in_folder(&mut once, &folder.0).args(["-O2", "-c", "source.c", "-o", "once.o"]).stdin(Stdio::null());
    let failed = |reason: String| LabError::Failed { process: "compiler".to_owned(), reason };
    let output = once.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        Ok(folder)
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).lines().take(3).collect::<Vec<_>>().join(" / ")))
    }
}

/// A compiler that is ended leaves its files of assembly behind.
fn in_folder<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    command.current_dir(folder).env("TMPDIR", folder)
}

/// Functions of C without any header.
fn source() -> String {
    let function = |number: u32| {
        format!(
            "unsigned long f{number}(unsigned long *a, unsigned long n) {{\n  unsigned long s = {number};\n  for (unsigned long i = 0; i < n; \
             i++) {{\n    s = s * 6364136223846793005ul + a[i] % (i + {number} + 1);\n    if (s & {number})\n      a[i] ^= s >> 7;\n    else\n      \
             a[n - 1 - i] += s;\n  }}\n  return s;\n}}\n"
        )
    };
    (1..=FUNCTIONS).map(function).collect()
}

/// Functions of the source: most of a second of compiling.
pub(super) const FUNCTIONS: u32 = 100;
const COMPILING: &str = "while :; do cc -O2 -c source.c -o \"$1\"; done";

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn compilers_compile_in_a_folder_of_their_own_which_goes_with_them() {
        // It links this test.
        let version = compiler().expect("cc is there");
        assert!(!version.is_empty());
        let programs = OtherPrograms::start(OtherWork::Compiler, 2).expect("started");
        let folder = programs._folder.as_ref().expect("a folder").0.clone();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !["0.o", "1.o"].iter().all(|name| folder.join(name).exists()) {
            assert!(Instant::now() < deadline, "nothing compiled");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(programs);
        assert!(!folder.exists());
    }

    #[test]
    fn other_programs_end_with_their_input() {
        for work in [OtherWork::EachCpu, OtherWork::Compiler] {
            let mut programs = OtherPrograms::start(work, 2).expect("started");
            let ids: Vec<u32> = programs._programs.iter().filter_map(Supervised::id).collect();
            assert_eq!(ids.len(), 2);
            // Whatever ends this process closes their input and does nothing else.
            programs._programs.iter_mut().for_each(Supervised::close);
            assert!(ids.iter().all(|id| !Path::new(&format!("/proc/{id}")).exists()), "{work:?} goes on");
        }
    }
}
