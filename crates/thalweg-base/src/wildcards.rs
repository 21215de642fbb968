//! Names that people choose by patterns.

/// Whether `text` fits `pattern`, in which `*` stands for any characters, also none, and `?` for one. All others stand for themselves, and
/// `text` is never taken for a pattern.
///
/// Takes at most as many steps as the product of both lengths: only the last `*` is ever tried again.
pub fn fits_wildcards(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    let mut retry: Option<(&str, &str)> = None;
    loop {
        let (mut pattern_rest, mut text_rest) = (pattern.chars(), text.chars());
        match (pattern_rest.next(), text_rest.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                pattern = pattern_rest.as_str();
                retry = Some((pattern, text));
            }
            (Some(expected), Some(found)) if expected == '?' || expected == found => {
                (pattern, text) = (pattern_rest.as_str(), text_rest.as_str());
            }
            _ => {
                // The last star swallows one character more.
                let Some((behind_star, from)) = retry else { return false };
                let mut rest = from.chars();
                if rest.next().is_none() {
                    return false;
                }
                (pattern, text) = (behind_star, rest.as_str());
                retry = Some((pattern, text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fits_wildcards;
    use crate::rng::Rng;

    #[test]
    fn only_stars_and_question_marks_of_the_pattern_stand_for_others() {
        let check = |pattern: &str, text: &str, expect: bool| {
            assert_eq!(fits_wildcards(pattern, text), expect, "{pattern:?} {text:?}");
        };
        check("", "", true);
        check("", "a", false);
        check("*", "", true);
        check("**", "any", true);
        check("?", "", false);
        check("?", "ü", true);
        check("a*b*c", "aXbXbXc", true);
        check("a*b*c", "aXbXbX", false);
        check("cam*", "camera[0]", true);
        check("camera[?]", "camera[0]", true);
        check("camera[0]", "camera[0]", true);
        check("camera[0]", "camera0", false);
        check("a\\b", "ab", false);
        check("a\\*", "a\\b", true);
        check("a*", "a*", true);
        check("ab", "a*", false);
        check("ab", "*", false);
        check("a?", "a*", true);
    }

    /// The textbook definition, exponential but plainly right.
    fn fits_by_definition(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|skip| fits_by_definition(rest, &text[skip..])),
            ([b'?', rest @ ..], [_, others @ ..]) => fits_by_definition(rest, others),
            ([literal, rest @ ..], [other, others @ ..]) => literal == other && fits_by_definition(rest, others),
            (_, []) => false,
        }
    }

    #[test]
    fn what_fits_is_what_the_definition_says() {
        let mut rng = Rng::new(7);
        let mut random = |alphabet: &[u8], length: u64| {
            let count = rng.below(length);
            let letter = |_| char::from(alphabet[rng.below(alphabet.len() as u64) as usize]);
            (0..count).map(letter).collect::<String>()
        };
        for _ in 0..20_000 {
            let (pattern, text) = (random(b"ab*?", 8), random(b"ab*?", 10));
            let expect = fits_by_definition(pattern.as_bytes(), text.as_bytes());
            assert_eq!(fits_wildcards(&pattern, &text), expect, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_takes_no_time() {
        let (pattern, text) = ("*a".repeat(2_000), "a".repeat(1_999) + "b");
        assert!(!fits_wildcards(&pattern, &text));
    }
}
