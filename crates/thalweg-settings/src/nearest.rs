//! The allowed word that a mistyped one was meant to be.

/// The candidate with the fewest changed, missing or added letters; `None` when even that one is too far off to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, found) = candidates.into_iter().map(|candidate| (distance(word, candidate), candidate)).min()?;
    (distance <= word.chars().count().max(3) / 2).then_some(found)
}

/// Levenshtein distance without regard to upper and lower case.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typing_errors_lead_to_the_word_that_was_meant() {
        let words = ["reliability", "durability", "history", "depth"];
        assert_eq!(nearest("relaibility", words), Some("reliability"));
        assert_eq!(nearest("Dept", words), Some("depth"));
        assert_eq!(nearest("zzzzzz", words), None);
    }
}
