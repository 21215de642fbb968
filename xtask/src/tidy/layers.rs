//! Permitted dependencies: between the crates, and between the modules inside `thalweg-rtps`.

use super::{File, Findings};

/// Each crate with the crates of this workspace that it may depend on.
const CRATES: [(&str, &[&str]); 23] = [
    ("thalweg-base", &[]),
    ("thalweg-cdr", &[]),
    ("thalweg-derive", &[]),
    ("thalweg-rtps", &["thalweg-base"]),
    ("thalweg-transport", &["thalweg-base"]),
    (
        "thalweg",
        &[
            "thalweg-base",
            "thalweg-cdr",
            "thalweg-derive",
            "thalweg-rtps",
            "thalweg-settings",
            "thalweg-transport",
            "thalweg-types",
        ],
    ),
    ("thalweg-types", &["thalweg-base", "thalweg-cdr"]),
    (
        "thalweg-coap",
        &[
            "thalweg",
            "thalweg-base",
            "thalweg-cdr",
            "thalweg-host",
            "thalweg-metrics",
            "thalweg-settings",
            "thalweg-transport",
            "thalweg-types",
        ],
    ),
    ("thalweg-metrics", &["thalweg"]),
    ("thalweg-recording", &["thalweg", "thalweg-base", "thalweg-types"]),
    ("thalweg-settings", &["thalweg-base"]),
    ("thalweg-view", &["thalweg", "thalweg-base", "thalweg-recording"]),
    ("thalweg-sim", &["thalweg-cdr", "thalweg-rtps"]),
    ("thalweg-host", &[]),
    ("thalweg-lab-station", &["thalweg-base", "thalweg-host"]),
    ("thalweg-advisor", &["thalweg-host", "thalweg-transport"]),
    ("thalweg-probe", &["thalweg-base", "thalweg-host", "thalweg-lab-station", "thalweg-transport"]),
    ("thalweg-report", &[]),
    (
        "thalweg-lab",
        &[
            "thalweg",
            "thalweg-base",
            "thalweg-coap",
            "thalweg-host",
            "thalweg-lab-station",
            "thalweg-probe",
            "thalweg-report",
            "thalweg-settings",
            "thalweg-sim",
            "thalweg-transport",
            "thalweg-video",
        ],
    ),
    (
        "thalweg-cli",
        &[
            "thalweg",
            "thalweg-advisor",
            "thalweg-base",
            "thalweg-cdr",
            "thalweg-coap",
            "thalweg-host",
            "thalweg-lab",
            "thalweg-metrics",
            "thalweg-probe",
            "thalweg-recording",
            "thalweg-report",
            "thalweg-rtps",
            "thalweg-sim",
            "thalweg-types",
            "thalweg-video",
            "thalweg-view",
        ],
    ),
    ("thalweg-testing", &[]),
    ("thalweg-video", &["thalweg", "thalweg-base", "thalweg-host", "thalweg-transport"]),
    ("xtask", &["thalweg-host"]),
];

/// The modules of `thalweg-rtps`, lowest layer first; a module may name those of its own layer and below.
const LAYERS: [&[&str]; 7] = [
    &["types", "time", "rng", "payload", "outbox"],
    &["assertion", "count", "proxies", "shared", "status", "round_trip", "trace", "vendor"],
    &["wire", "qos"],
    &["history", "flow_control"],
    &["writer", "reader"],
    &["discovery", "receiver"],
    &["participant"],
];

/// Neighbours in a layer that must not know each other.
const STRANGERS: [(&str, &str); 1] = [("writer", "reader")];

/// Where the DDS API stays out, and the one module of it that may use the API: state machines there know no middleware.
const WITHOUT_MIDDLEWARE: (&str, &str) = ("crates/thalweg-video/src/", "topics/");

/// Reports each line that names the DDS API where it stays out.
pub fn check_middleware(files: &[File], findings: &mut Findings) {
    let (source, user) = WITHOUT_MIDDLEWARE;
    let is_kept_out = |file: &&File| file.path.strip_prefix(source).is_some_and(|path| !path.starts_with(user));
    for file in files.iter().filter(is_kept_out).filter(|file| file.is_production()) {
        for (number, line) in file.production_lines() {
            let code = line.split("//").next().unwrap_or_default();
            if code.contains("thalweg::") {
                findings.error(format!("{}:{number}", file.path), format!("only {user} may use the DDS API"));
            }
        }
    }
}

/// Reports each workspace dependency that points the wrong way. Development dependencies are free.
pub fn check_crates(files: &[File], findings: &mut Findings) {
    for file in files.iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let is_member = file.path.starts_with("crates/") || file.path.starts_with("xtask/");
        let Some(name) = file.path.rsplit('/').nth(1).filter(|_| is_member) else { continue };
        if !file.text.contains("[lints]\nworkspace = true") {
            findings.error(&file.path, "does not inherit the workspace's lints");
        }
        let Some((_, allowed)) = CRATES.iter().find(|(known, _)| *known == name) else {
            findings.error(&file.path, "is not in the list of crates (architecture, xtask/src/tidy/layers.rs)");
            continue;
        };
        for dependency in dependencies(&file.text) {
            let is_ours = CRATES.iter().any(|(known, _)| *known == dependency);
            if is_ours && !allowed.contains(&dependency) {
                findings.error(&file.path, format!("{name} must not depend on {dependency}"));
            }
        }
    }
}

/// The names below `[dependencies]`.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[dependencies]";
        } else if inside && !line.starts_with('#') {
            names.extend(line.split(['.', ' ', '=']).next().filter(|name| !name.is_empty()));
        }
    }
    names
}

/// Reports each `crate::…` path in `thalweg-rtps` that names a higher layer or a stranger.
pub fn check_modules(files: &[File], findings: &mut Findings) {
    const SOURCE: &str = "crates/thalweg-rtps/src/";
    for file in files.iter().filter(|file| file.path.starts_with(SOURCE) && file.is_production()) {
        let module = file.path[SOURCE.len()..].split(['/', '.']).next().unwrap_or_default();
        if module == "lib" {
            continue;
        }
        let Some(layer) = layer_of(module) else {
            findings.error(&file.path, format!("module {module} is in no layer (xtask/src/tidy/layers.rs)"));
            continue;
        };
        for (number, line) in file.production_lines() {
            for used in used_modules(line) {
                let strangers = STRANGERS.contains(&(module, used)) || STRANGERS.contains(&(used, module));
                if layer_of(used).is_some_and(|other| other > layer) || strangers {
                    findings.error(format!("{}:{number}", file.path), format!("{module} must not use {used}"));
                }
            }
        }
    }
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The modules that a line names after `crate::`, also in `use crate::{a::X, b::Y}`.
fn used_modules(line: &str) -> Vec<&str> {
    let mut used = Vec::new();
    let code = line.split("//").next().unwrap_or_default();
    for rest in code.split("crate::").skip(1) {
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let parts = group.split(|character| {
                match character {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ => {}
                }
                character == ',' && depth == 0
            });
            used.extend(parts.filter_map(|part| first_word(part.trim())));
        } else {
            used.extend(first_word(rest));
        }
    }
    used
}

fn first_word(text: &str) -> Option<&str> {
    text.split(|character: char| !character.is_alphanumeric() && character != '_')
        .next()
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, errors: usize) {
        let files = [File { path: path.to_owned(), text: text.to_owned() }];
        let mut findings = Findings::default();
        check_modules(&files, &mut findings);
        check_middleware(&files, &mut findings);
        check_crates(&files, &mut findings);
        assert_eq!(findings.errors.len(), errors, "{path}: {:?}", findings.errors);
    }

    #[test]
    fn writer_and_reader_never_name_each_other() {
        check("crates/thalweg-rtps/src/writer/mod.rs", "use crate::history::WriterHistory;\n", 0);
        check("crates/thalweg-rtps/src/writer/mod.rs", "use crate::reader::Reader;\n", 1);
        check("crates/thalweg-rtps/src/reader/mod.rs", "use crate::{time::Instant, writer::Writer};\n", 1);
    }

    #[test]
    fn a_module_names_no_higher_layer() {
        check("crates/thalweg-rtps/src/wire/mod.rs", "    let x = crate::participant::Participant::new();\n", 1);
        check("crates/thalweg-rtps/src/discovery/mod.rs", "use crate::wire::{self, Header};\n", 0);
        check("crates/thalweg-rtps/src/novelty.rs", "", 1);
    }

    #[test]
    fn pictures_know_no_middleware_but_in_their_topics() {
        check("crates/thalweg-video/src/receiver/mod.rs", "use thalweg::DataReader;\n", 1);
        check("crates/thalweg-video/src/receiver/mod.rs", "use thalweg_base::time::Instant; // thalweg::types\n", 0);
        check("crates/thalweg-video/src/topics/subscriber.rs", "use thalweg::DataReader;\n", 0);
    }

    #[test]
    fn unit_tests_may_name_anything() {
        check("crates/thalweg-rtps/src/wire/mod.rs", "#[cfg(test)]\nmod tests { use crate::writer::Writer; }\n", 0);
    }

    #[test]
    fn a_crate_depends_downwards_only() {
        let lints = "\n[lints]\nworkspace = true\n";
        check("crates/thalweg-rtps/Cargo.toml", &format!("[dependencies]\nthalweg-base.workspace = true{lints}"), 0);
        check(
            "crates/thalweg-rtps/Cargo.toml",
            &format!("[dependencies]\nthalweg-transport.workspace = true{lints}"),
            1,
        );
        check("crates/thalweg-lab/Cargo.toml", &format!("[dependencies]\nthalweg-rtps.workspace = true{lints}"), 1);
        check("crates/thalweg-rtps/Cargo.toml", "[dependencies]\n", 1);
    }
}
