//! What DDS says about who matches whom, said a second time: what is expected of a world must not come from the engine that is tested.

use thalweg_rtps::qos::{Ownership, ReaderQos, WriterOwnership, WriterQos};

/// Whether what a writer offers is what a reader of its topic requests (DDS 1.4 §2.2.3), and their partitions meet.
pub(crate) fn fit(offered: &WriterQos, requested: &ReaderQos) -> bool {
    let reliable = offered.reliability.is_reliable() || !requested.reliability.is_reliable();
    let durable = offered.durability >= requested.durability;
    let (gives, wants) = (offered.presentation, requested.presentation);
    let presented = gives.access_scope >= wants.access_scope
        && (gives.coherent || !wants.coherent)
        && (gives.ordered || !wants.ordered);
    let in_time = offered.timing.deadline <= requested.timing.deadline
        && offered.timing.latency_budget <= requested.timing.latency_budget;
    let owned = matches!(offered.ownership, WriterOwnership::Exclusive { .. })
        == matches!(requested.ownership, Ownership::Exclusive);
    let (gives, wants) = (offered.liveliness, requested.liveliness);
    let alive = gives.kind >= wants.kind && gives.lease <= wants.lease;
    let ordered = offered.destination_order >= requested.destination_order;
    let fits = reliable && durable && presented && in_time && owned && alive && ordered;
    fits && meet(&offered.partition, &requested.partition)
}

/// Whether two lists of partitions have one in common; none at all is the one without a name (DDS 1.4 §2.2.3.13).
fn meet(ours: &[String], theirs: &[String]) -> bool {
    let nameless = [String::new()];
    let or_nameless = |names: &'_ [String]| if names.is_empty() { nameless.to_vec() } else { names.to_vec() };
    let (ours, theirs) = (or_nameless(ours), or_nameless(theirs));
    ours.iter().any(|one| theirs.iter().any(|other| is_common(one, other)))
}

fn is_common(one: &str, other: &str) -> bool {
    match (is_pattern(one), is_pattern(other)) {
        (false, false) => one == other,
        (true, false) => describes(one.as_bytes(), other.as_bytes()),
        (false, true) => describes(other.as_bytes(), one.as_bytes()),
        // Equal names without `*` and `?` are names to those who know no brackets.
        (true, true) => one == other && !one.contains(['*', '?']),
    }
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Patterns of POSIX `fnmatch`, as far as worlds have them.
fn describes(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], _) => name.is_empty(),
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|skipped| describes(rest, &name[skipped..])),
        ([b'?', rest @ ..], [_, tail @ ..]) => describes(rest, tail),
        ([b'[', rest @ ..], [first, tail @ ..]) => {
            let end = rest.iter().position(|byte| *byte == b']');
            end.is_some_and(|end| rest[..end].contains(first) && describes(&rest[end + 1..], tail))
        }
        ([same, rest @ ..], [first, tail @ ..]) => same == first && describes(rest, tail),
        (_, []) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_describe_names_and_no_other_patterns_but_equal_ones_in_brackets() {
        let common = [("a", "a"), ("a*", "ab"), ("[ab]", "b"), ("b?", "b1"), ("*", ""), ("a*", "a"), ("[ab]", "[ab]")];
        assert!(common.iter().all(|(one, other)| is_common(one, other) && is_common(other, one)));
        let apart = [("a", ""), ("a*", "b"), ("[ab]", "ab"), ("b?", "b"), ("*", "a*"), ("a*", "a*")];
        assert!(apart.iter().all(|(one, other)| !is_common(one, other) && !is_common(other, one)));
        assert!(meet(&[], &["*".to_owned()]) && meet(&[], &[]) && !meet(&[], &["a".to_owned()]));
    }
}
