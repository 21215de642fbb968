//! Checks of HTML pages that stand by themselves.

/// Checks that elements nest and close; elements that HTML never closes are skipped.
#[track_caller]
pub fn check_html(html: &str) {
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

/// Checks that nothing in the page is loaded from outside it, and that links stay beside it.
#[track_caller]
pub fn check_offline(html: &str) {
    for outside in ["http://", "https://", "@import", "url(", "src=", "<link", "<iframe", "onload=", "fetch("] {
        assert!(!html.contains(outside), "{outside} in the page");
    }
    for target in html.split("href=\"").skip(1) {
        let (target, _) = target.split_once('"').expect("an end");
        assert!(target.starts_with('#') || !target.contains(':') && !target.starts_with('/'), "{target} leads away");
    }
    let (_, policy) = html.split_once("Content-Security-Policy\" content=\"").expect("a policy");
    let (policy, _) = policy.split_once('"').expect("an end");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("http") && !policy.contains('*') && !policy.contains("script-src 'unsafe"), "{policy}");
    assert_eq!(html.matches("<script").count(), 1, "only the script whose digest is in the policy runs");
}
