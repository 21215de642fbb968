use thalweg_testing::pages::{check_html, check_offline};

use super::*;
use crate::table::Table;

#[test]
fn a_page_is_well_formed_offline_and_escapes_what_it_shows() {
    let page = Page {
        title: "a <b> & c".to_owned(),
        subtitle: "today".to_owned(),
        tiles: vec![Tile { figure: "<1 µs".to_owned(), meaning: "fast & steady".to_owned() }],
        warnings: vec!["a > b".to_owned()],
        sections: vec![Section {
            title: "First".to_owned(),
            seen: vec!["<script>alert(1)</script>".to_owned()],
            tables: vec![Table::new("t", &["a"])],
            figures: vec![
                Figure::new("<see>", "<svg></svg>".to_owned()).resting_on("n < 5").with_table(Table::new("u", &["b"])),
            ],
            files: vec![("run".to_owned(), vec![PageLink { text: "a".to_owned(), path: "runs/a".to_owned() }])],
            ..Section::default()
        }],
        facts: vec![("CPU", "x".to_owned())],
        ..Page::default()
    };
    let html = page.to_html();
    check_html(&html);
    check_offline(&html);
    assert!(!html.contains("<script>alert"), "text stays text");
    for part in ["&lt;see&gt; <small>n &lt; 5</small>", "<details><summary>Table", "<a href=\"runs/a\">a</a>"] {
        assert!(html.contains(part), "{part} in {html}");
    }
}

#[test]
fn the_policy_names_the_script_that_is_there() {
    use sha2::{Digest, Sha256};
    let html = Page::default().to_html();
    let (_, script) = html.split_once("<script>").expect("a script");
    let (script, _) = script.split_once("</script>").expect("an end");
    let digest = Sha256::digest(script.as_bytes());
    // Any decoder would do; the first bytes of the digest decide the first letters.
    let first = u32::from(digest[0]) << 16 | u32::from(digest[1]) << 8 | u32::from(digest[2]);
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let expect: String = (0..4).map(|place| letters[(first >> (18 - 6 * place) & 63) as usize] as char).collect();
    assert!(html.contains(&format!("'sha256-{expect}")), "{expect}");
    assert!(script.len() < 6_000, "a few kilobytes at most: {}", script.len());
}

#[test]
fn a_page_without_verdicts_begins_with_what_its_sections_say() {
    let section = |title: &str, seen: &[&str]| Section {
        title: title.to_owned(),
        seen: seen.iter().map(|text| (*text).to_owned()).collect(),
        ..Section::default()
    };
    let sections = vec![section("First", &["fast", "steady"]), section("Second", &[])];
    let page = Page { sections, ..Page::default() };
    let html = page.to_html();
    let (header, _) = html.split_once("<main>").expect("a body");
    assert!(header.contains("<p class=\"headline\">First</p>\n<ul class=\"details\">\n<li>fast</li>"), "{header}");
    assert!(!header.contains("steady") && !header.contains("Second"), "{header}");
    let card = Card { standing: Standing::Holds, headline: "well".to_owned(), details: Vec::new() };
    let html = Page { cards: vec![card], ..page }.to_html();
    let (header, _) = html.split_once("<main>").expect("a body");
    assert!(header.contains("well") && !header.contains("First"), "{header}");
}

#[test]
fn a_verdict_has_a_sign_beside_its_colour() {
    let signs = [(Standing::Holds, "✓"), (Standing::Fails, "✗"), (Standing::Told, "•"), (Standing::NotJudged, "?")];
    for (standing, sign) in signs {
        let card = Card { standing, headline: "a & b".to_owned(), details: vec!["c".to_owned()] };
        assert_eq!(card.to_text(), format!("{sign} a & b\n    c\n"));
        let html = Page { cards: vec![card], ..Page::default() }.to_html();
        check_html(&html);
        assert!(html.contains(sign) && html.contains("a &amp; b"), "{sign}");
    }
}
