//! Bytes that left this host, or this network namespace.

use std::fs;

/// Bytes that all interfaces but loopback have sent so far, headers included; of loopback where there is no other. `None` where the
/// kernel does not tell.
pub fn transmitted_bytes() -> Option<u64> {
    parse(&fs::read_to_string("/proc/net/dev").ok()?)
}

fn parse(text: &str) -> Option<u64> {
    let sent = |line: &str| {
        let (name, figures) = line.split_once(':')?;
        let bytes: u64 = figures.split_whitespace().nth(8)?.parse().ok()?;
        Some((name.trim() == "lo", bytes))
    };
    let all: Vec<(bool, u64)> = text.lines().filter_map(sent).collect();
    let only_loopback = all.iter().all(|(loopback, _)| *loopback);
    (!all.is_empty())
        .then(|| all.iter().filter(|(loopback, _)| *loopback == only_loopback).map(|(_, bytes)| bytes).sum())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn loopback_counts_only_where_it_is_alone() {
        let head = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n";
        let line = |name: &str, sent: u64| format!("{name}: 9 9 9 9 9 9 9 9 {sent} 8 7 6 5 4 3 2\n");
        assert_eq!(parse(&format!("{head}{}{}{}", line("  lo", 5), line("eth0", 70), line("eth1", 600))), Some(670));
        assert_eq!(parse(&format!("{head}{}", line("  lo", 5))), Some(5));
        assert_eq!(parse(head), None);
    }
}
