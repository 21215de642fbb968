use super::*;
use crate::table::Table;

/// Checks that elements nest and close; elements that HTML never closes are skipped.
#[track_caller]
pub(crate) fn check_html(html: &str) {
    let mut open = Vec::new();
    for tag in html.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("every tag ends");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().expect("a name");
        if matches!(name, "!DOCTYPE" | "meta") || tag.ends_with('/') {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "at </{name}>");
        } else {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} left open");
}

/// Checks that nothing in the page points outside it.
#[track_caller]
pub(crate) fn check_offline(html: &str) {
    for outside in ["http://", "https://", "@import", "url(", "src=", "href=", "<script", "<link", "<iframe", "onload="]
    {
        assert!(!html.contains(outside), "{outside} in the page");
    }
    assert!(
        html.contains("default-src 'none'; style-src 'unsafe-inline'; img-src data:"),
        "the policy forbids loading"
    );
}

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
            ..Section::default()
        }],
        facts: vec![("CPU", "x".to_owned())],
        ..Page::default()
    };
    let html = page.to_html();
    check_html(&html);
    check_offline(&html);
    assert!(!html.contains("<script"), "text stays text");
}
