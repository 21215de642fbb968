//! Licences, sources and duplicates of the dependencies, from cargo's metadata.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Outcome;
use crate::workspace::{cargo, output, root};

/// Permitted sources of dependencies.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks every package that any feature on any platform needs, and names those that are there in several versions.
pub fn run() -> Outcome {
    let path = root().join("deny.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let accepted = accepted(&text).ok_or_else(|| format!("{}: no list `allow` of licences", path.display()))?;
    let metadata = output(&mut cargo(&["metadata", "--all-features", "--locked", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let faults: Vec<String> = packages.iter().flat_map(|package| faults(package, &accepted)).collect();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(text_of(package, "name")).or_default().push(text_of(package, "version"));
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        println!("warning: {name} is there {} times: {}", versions.len(), versions.join(", "));
    }
    println!("licences: {} packages, {} errors", packages.len(), faults.len());
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// The licences that `deny.toml` accepts.
fn accepted(text: &str) -> Option<Vec<String>> {
    let (_, list) = text.split_once("\nallow = ")?;
    let (list, _) = list.split_once(']')?;
    // A list of strings is written alike in TOML and in JSON.
    serde_json::from_str(&format!("{list}]")).ok()
}

fn text_of<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

/// The faults of a package.
fn faults(package: &Value, accepted: &[String]) -> Vec<String> {
    let shown = format!("{} {}", text_of(package, "name"), text_of(package, "version"));
    let mut out = Vec::new();
    match package["license"].as_str() {
        None => out.push(format!("{shown} does not name its licence")),
        Some(licence) => match is_accepted(licence, accepted) {
            Some(true) => {}
            Some(false) => out.push(format!("{shown}: the licence {licence} is not among those of deny.toml")),
            None => out.push(format!("{shown}: the licence {licence} is no expression of SPDX")),
        },
    }
    match package["source"].as_str() {
        None => out.extend(wildcards(package).map(|name| format!("{shown}: any version of {name} would do; name one"))),
        Some(REGISTRY) => {}
        Some(source) => out.push(format!("{shown} comes from {source}, not from crates.io")),
    }
    out
}

/// Dependencies of any version, those on folders apart.
fn wildcards(package: &Value) -> impl Iterator<Item = &str> {
    let all = package["dependencies"].as_array().into_iter().flatten();
    all.filter(|one| one["req"] == "*" && one["path"].is_null()).map(|one| text_of(one, "name"))
}

/// Whether the accepted licences fulfil an expression of SPDX 2.3 Annex D, `/` of older packages included; `None` where it is none.
fn is_accepted(expression: &str, accepted: &[String]) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = Words { words: spaced.split_whitespace().collect(), next: 0 };
    let value = words.any(accepted)?;
    words.take().is_none().then_some(value)
}

/// The words of an expression, read from left to right.
struct Words<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Words<'a> {
    fn take(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.next).copied();
        self.next += 1;
        word
    }

    fn take_if(&mut self, expect: &str) -> bool {
        let is_there = self.words.get(self.next) == Some(&expect);
        self.next += usize::from(is_there);
        is_there
    }

    fn any(&mut self, accepted: &[String]) -> Option<bool> {
        let mut value = self.all(accepted)?;
        while self.take_if("OR") {
            value |= self.all(accepted)?;
        }
        Some(value)
    }

    fn all(&mut self, accepted: &[String]) -> Option<bool> {
        let mut value = self.one(accepted)?;
        while self.take_if("AND") {
            value &= self.one(accepted)?;
        }
        Some(value)
    }

    fn one(&mut self, accepted: &[String]) -> Option<bool> {
        match self.take()? {
            "(" => {
                let value = self.any(accepted)?;
                self.take_if(")").then_some(value)
            }
            ")" | "OR" | "AND" | "WITH" => None,
            licence => {
                let exception = if self.take_if("WITH") { format!(" WITH {}", self.take()?) } else { String::new() };
                Some(accepted.contains(&format!("{licence}{exception}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{accepted, faults, is_accepted};

    fn list() -> Vec<String> {
        accepted("# why\n[licenses]\nallow = [\"MIT\", \"Apache-2.0 WITH LLVM-exception\", \"Zlib\"]\n")
            .expect("a list")
    }

    #[track_caller]
    fn check(expression: &str, expect: Option<bool>) {
        assert_eq!(is_accepted(expression, &list()), expect, "{expression}");
    }

    #[test]
    fn expressions_are_weighed_as_spdx_says() {
        check("MIT", Some(true));
        check("GPL-3.0", Some(false));
        check("GPL-3.0 OR MIT", Some(true));
        check("GPL-3.0/MIT", Some(true));
        check("MIT AND GPL-3.0", Some(false));
        check("GPL-3.0 OR MIT AND Zlib", Some(true));
        check("(GPL-3.0 OR MIT) AND GPL-2.0", Some(false));
        check("Apache-2.0 WITH LLVM-exception", Some(true));
        check("Apache-2.0", Some(false));
        for broken in ["", "MIT OR", "(MIT", "MIT)", "AND MIT", "MIT Zlib", "MIT WITH"] {
            check(broken, None);
        }
    }

    #[test]
    fn packages_of_unknown_licence_source_or_version_are_refused() {
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        let package = |licence, source| json!({"name": "a", "version": "1.0.0", "license": licence, "source": source});
        let check = |package: &serde_json::Value, expect: &[&str]| {
            let found = faults(package, &list());
            assert!(found.len() == expect.len(), "{found:?}");
            assert!(found.iter().zip(expect).all(|(found, expect)| found.contains(expect)), "{found:?}");
        };
        check(&package(Some("MIT"), Some(registry)), &[]);
        check(&package(None, Some(registry)), &["does not name its licence"]);
        check(
            &package(Some("AGPL-3.0"), Some("git+https://example.org")),
            &["AGPL-3.0 is not among", "not from crates.io"],
        );
        let mut own = package(Some("MIT"), None);
        own["dependencies"] =
            json!([{"name": "b", "req": "*"}, {"name": "c", "req": "*", "path": "/c"}, {"name": "d", "req": "^1"}]);
        check(&own, &["any version of b would do"]);
    }
}
