//! URI references and what they mean at a base (RFC 3986 §4.1, §5.2).

/// The parts of a URI or of a relative reference, as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UriReference<'a> {
    pub scheme: Option<&'a str>,
    /// Host and port, without the slashes in front.
    pub authority: Option<&'a str>,
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub fragment: Option<&'a str>,
}

impl<'a> UriReference<'a> {
    /// The parts of any text (RFC 3986 Appendix B); whether they are well-formed is not looked at.
    pub(crate) fn parse(text: &'a str) -> UriReference<'a> {
        let (rest, fragment) = split_off(text, '#');
        let (rest, query) = split_off(rest, '?');
        let (scheme, rest) = match rest.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, rest),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(authority), path)
            }
            None => (None, rest),
        };
        UriReference { scheme, authority, path, query, fragment }
    }

    fn write(&self) -> String {
        let mut text = String::new();
        let parts = [("", self.scheme, ":"), ("//", self.authority, ""), ("", Some(self.path), "")];
        for (before, part, after) in parts.into_iter().chain([("?", self.query, ""), ("#", self.fragment, "")]) {
            if let Some(part) = part {
                [before, part, after].into_iter().for_each(|piece| text.push_str(piece));
            }
        }
        text
    }
}

/// What `reference` means at `base`, a URI. A reference that is a URI itself stays as it is.
pub(crate) fn resolve(base: &str, reference: &str) -> String {
    let given = UriReference::parse(reference);
    if given.scheme.is_some() {
        return reference.to_owned();
    }
    let base = UriReference::parse(base);
    let authority = given.authority.or(base.authority);
    let (path, query) = match given.path {
        "" if given.authority.is_none() => (base.path.to_owned(), given.query.or(base.query)),
        path if given.authority.is_some() || path.starts_with('/') => (without_dots(path), given.query),
        path => (without_dots(&merged(&base, path)), given.query),
    };
    UriReference { scheme: base.scheme, authority, path: &path, query, fragment: given.fragment }.write()
}

/// A relative path behind the last slash of the base's (RFC 3986 §5.2.3).
fn merged(base: &UriReference<'_>, path: &str) -> String {
    match base.path.rfind('/') {
        Some(slash) => format!("{}{path}", &base.path[..=slash]),
        None if base.authority.is_some() => format!("/{path}"),
        None => path.to_owned(),
    }
}

/// The path without segments `.` and `..` (RFC 3986 §5.2.4).
fn without_dots(path: &str) -> String {
    let (root, rest) = if let Some(rest) = path.strip_prefix('/') { ("/", rest) } else { ("", path) };
    let mut kept = Vec::new();
    let mut is_folder = false;
    for segment in rest.split('/') {
        is_folder = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => _ = kept.pop(),
            _ => kept.push(segment),
        }
    }
    let end = if is_folder && !kept.is_empty() { "/" } else { "" };
    format!("{root}{}{end}", kept.join("/"))
}

fn split_off(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn is_scheme(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, cases: &[(&str, &str)]) {
        for (reference, expect) in cases {
            assert_eq!(resolve(base, reference), *expect, "{reference:?} at {base}");
        }
    }

    #[test]
    fn references_mean_what_the_examples_of_the_rfc_say() {
        let normal = [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("g#s", "http://a/b/c/g#s"),
            ("g?y#s", "http://a/b/c/g?y#s"),
            (";x", "http://a/b/c/;x"),
            ("g;x?y#s", "http://a/b/c/g;x?y#s"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
        ];
        let abnormal = [
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("g#s/../x", "http://a/b/c/g#s/../x"),
        ];
        check("http://a/b/c/d;p?q", &normal);
        check("http://a/b/c/d;p?q", &abnormal);
    }

    #[test]
    fn a_base_without_a_path_is_the_root_of_its_authority() {
        let cases = [
            ("", "coap://[2001:db8::1]:61616"),
            ("x", "coap://[2001:db8::1]:61616/x"),
            ("/x", "coap://[2001:db8::1]:61616/x"),
            ("?x", "coap://[2001:db8::1]:61616?x"),
            ("//h/x", "coap://h/x"),
            ("//h", "coap://h"),
            ("coap://h/a/../b", "coap://h/a/../b"),
            ("/a//..", "coap://[2001:db8::1]:61616/a/"),
            ("1:x", "coap://[2001:db8::1]:61616/1:x"),
        ];
        check("coap://[2001:db8::1]:61616", &cases);
    }

    proptest::proptest! {
        #[test]
        fn what_is_resolved_stays_as_it_is(reference in "[a-c:/?#.]{0,12}") {
            let once = resolve("coap://h/a/b?q", &reference);
            proptest::prop_assert_eq!(resolve("coap://other/x", &once), once);
        }
    }
}
