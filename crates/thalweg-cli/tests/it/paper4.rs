//! `lab run paper4`: two of its parts, interrupted on the way.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use crate::program::{PATIENCE, Running, command, run};

/// Every run of a part with its result.
fn runs(part: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let folders = fs::read_dir(part.join("runs")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut out: Vec<(PathBuf, Vec<u8>)> =
        folders.filter_map(|folder| Some((folder.clone(), fs::read(folder.join("result.json")).ok()?))).collect();
    out.sort();
    out
}

#[test]
fn an_interrupted_part_goes_on_and_the_page_has_the_papers_figures() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("paper4-parts");
    let _ = fs::remove_dir_all(&out);
    let folder = out.to_str().expect("text");
    let words = ["lab", "run", "paper4", "--quick", "--peers", "none", "--parts", "layers,fairness", "--seed", "5"];
    let words = [&words[..], &["--out", folder]].concat();
    let first = Running::start(command(&words));
    let (layers, deadline) = (out.join("layers"), Instant::now() + PATIENCE);
    while runs(&layers).is_empty() {
        assert!(Instant::now() < deadline, "no run");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    first.signal("INT");
    first.finish().expect_code(130);
    let before = runs(&layers);
    assert!(before.len() < 5 && !out.join("report.html").exists(), "{}", before.len());

    let said = run(&words).expect_code(0);
    for part in
        ["Figure 12", "system call that sends", "Figure 14", "The paper: all subscribers", "vendors: not asked for"]
    {
        assert!(said.stdout.contains(part), "{part} in\n{}", said.stdout);
    }
    let whole = runs(&layers);
    assert_eq!(whole.len(), 5);
    assert!(before.iter().all(|one| whole.contains(one)), "what was measured stays");
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("<svg") && page.contains("Layers of the publisher"), "the picture");

    let again = run(&words).expect_code(0);
    assert_eq!((runs(&layers), again.stdout), (whole, said.stdout), "nothing is measured twice");
    let file = out.join("results.json");
    let results: Value = serde_json::from_str(&fs::read_to_string(&file).expect("results")).expect("JSON");
    assert_eq!((&results["schema"], results["parts"].as_array().map(Vec::len)), (&"thalweg.paper4/1".into(), Some(2)));
    let drawn = out.join("page.md");
    let words = ["lab", "page", file.to_str().expect("text"), "--out", drawn.to_str().expect("text")];
    run(&words).expect_code(0);
    let markdown = fs::read_to_string(&drawn).expect("a page");
    assert!(markdown.contains("Figure 14: latency of each subscriber") && markdown.contains(".svg"), "{markdown}");
}
