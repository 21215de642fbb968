//! Which partition names fit each other (DDS 1.4 §2.2.3.13).

/// True when one of the writer's names fits one of the reader's; no names at all means the one name "".
pub fn partitions_match<A: AsRef<str>, B: AsRef<str>>(offered: &[A], requested: &[B]) -> bool {
    match (offered, requested) {
        ([], []) => true,
        ([], requested) => requested.iter().any(|name| name_matches("", name.as_ref())),
        (offered, []) => offered.iter().any(|name| name_matches(name.as_ref(), "")),
        (offered, requested) => {
            offered.iter().any(|one| requested.iter().any(|other| name_matches(one.as_ref(), other.as_ref())))
        }
    }
}

/// True when both names are equal, or one is a pattern and the other a name that fits it. Two patterns never match.
pub fn name_matches(one: &str, other: &str) -> bool {
    match (is_pattern(one), is_pattern(other)) {
        (true, true) => one == other && !one.contains(['*', '?']),
        (true, false) => fits(one, other),
        (false, true) => fits(other, one),
        (false, false) => one == other,
    }
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '\\']) || name.split_once('[').is_some_and(|(_, rest)| rest.contains(']'))
}

/// POSIX `fnmatch` without flags: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a character to take it as it is.
///
/// Takes at most as many steps as the product of both lengths: only the last `*` is ever tried again.
fn fits(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    let mut retry: Option<(&str, &str)> = None;
    loop {
        if let Some(behind_star) = pattern.strip_prefix('*') {
            pattern = behind_star;
            retry = Some((behind_star, name));
        } else if pattern.is_empty() && name.is_empty() {
            return true;
        } else if let Some((pattern_rest, name_rest)) = step(pattern, name) {
            (pattern, name) = (pattern_rest, name_rest);
        } else {
            // The last star swallows one character more.
            let Some((behind_star, from)) = retry else { return false };
            let mut rest = from.chars();
            if rest.next().is_none() {
                return false;
            }
            (pattern, name) = (behind_star, rest.as_str());
            retry = Some((pattern, name));
        }
    }
}

/// Takes one character off `name` and what stands for it off `pattern`; `None` when they differ.
fn step<'p, 'n>(pattern: &'p str, name: &'n str) -> Option<(&'p str, &'n str)> {
    let mut name_rest = name.chars();
    let character = name_rest.next()?;
    let mut pattern_rest = pattern.chars();
    let fits = match pattern_rest.next()? {
        '?' => true,
        '[' => match bracket(pattern_rest.as_str(), character) {
            Some((inside, rest)) => {
                pattern_rest = rest.chars();
                inside
            }
            None => character == '[',
        },
        '\\' => pattern_rest.next()? == character,
        literal => literal == character,
    };
    fits.then_some((pattern_rest.as_str(), name_rest.as_str()))
}

/// Evaluates the bracket expression whose `[` was taken off: whether `character` is in, and the pattern behind the `]`.
/// `None` when it has no `]`: the `[` is then an ordinary character.
fn bracket(pattern: &str, character: char) -> Option<(bool, &str)> {
    let (negated, mut rest) = match pattern.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let mut inside = false;
    let mut first = true;
    loop {
        let mut chars = rest.chars();
        let low = match chars.next()? {
            // A `]` that comes first is a member.
            ']' if !first => return Some((inside != negated, chars.as_str())),
            '\\' => chars.next()?,
            low => low,
        };
        first = false;
        rest = chars.as_str();
        let mut high = low;
        if let Some(upper) = rest.strip_prefix('-').filter(|upper| !upper.starts_with(']')) {
            let mut chars = upper.chars();
            high = match chars.next()? {
                '\\' => chars.next()?,
                high => high,
            };
            rest = chars.as_str();
        }
        inside |= (low..=high).contains(&character);
    }
}
