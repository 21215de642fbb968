//! Datagrams that other implementations sent; see `testdata/README.md`.

use super::*;

/// Name and content of every file.
pub(super) const FILES: &[(&str, &str)] = &[
    ("cyclone-11.0.1-acknack", include_str!("../../../testdata/cyclone-11.0.1-acknack.hex")),
    ("cyclone-11.0.1-data", include_str!("../../../testdata/cyclone-11.0.1-data.hex")),
    ("cyclone-11.0.1-data-frag", include_str!("../../../testdata/cyclone-11.0.1-data-frag.hex")),
    ("cyclone-11.0.1-data-frag-repair", include_str!("../../../testdata/cyclone-11.0.1-data-frag-repair.hex")),
    ("cyclone-11.0.1-data-unkeyed", include_str!("../../../testdata/cyclone-11.0.1-data-unkeyed.hex")),
    ("cyclone-11.0.1-dispose", include_str!("../../../testdata/cyclone-11.0.1-dispose.hex")),
    ("cyclone-11.0.1-first-acknacks", include_str!("../../../testdata/cyclone-11.0.1-first-acknacks.hex")),
    ("cyclone-11.0.1-first-heartbeats", include_str!("../../../testdata/cyclone-11.0.1-first-heartbeats.hex")),
    ("cyclone-11.0.1-gap", include_str!("../../../testdata/cyclone-11.0.1-gap.hex")),
    ("cyclone-11.0.1-heartbeat-frag", include_str!("../../../testdata/cyclone-11.0.1-heartbeat-frag.hex")),
    ("cyclone-11.0.1-nack-frag", include_str!("../../../testdata/cyclone-11.0.1-nack-frag.hex")),
    ("cyclone-11.0.1-participant", include_str!("../../../testdata/cyclone-11.0.1-participant.hex")),
    ("cyclone-11.0.1-participant-gone", include_str!("../../../testdata/cyclone-11.0.1-participant-gone.hex")),
    ("cyclone-11.0.1-publication", include_str!("../../../testdata/cyclone-11.0.1-publication.hex")),
    ("cyclone-11.0.1-publication-default", include_str!("../../../testdata/cyclone-11.0.1-publication-default.hex")),
    ("cyclone-11.0.1-publication-gone", include_str!("../../../testdata/cyclone-11.0.1-publication-gone.hex")),
    ("cyclone-11.0.1-subscriptions", include_str!("../../../testdata/cyclone-11.0.1-subscriptions.hex")),
    ("cyclone-11.0.1-unregister", include_str!("../../../testdata/cyclone-11.0.1-unregister.hex")),
    ("fastdds-2.9.1-data", include_str!("../../../testdata/fastdds-2.9.1-data.hex")),
    ("fastdds-2.9.1-data-frag", include_str!("../../../testdata/fastdds-2.9.1-data-frag.hex")),
    ("fastdds-2.9.1-data-frag-last", include_str!("../../../testdata/fastdds-2.9.1-data-frag-last.hex")),
    ("fastdds-2.9.1-dispose", include_str!("../../../testdata/fastdds-2.9.1-dispose.hex")),
    ("fastdds-2.9.1-first-acknack", include_str!("../../../testdata/fastdds-2.9.1-first-acknack.hex")),
    ("fastdds-2.9.1-first-heartbeat", include_str!("../../../testdata/fastdds-2.9.1-first-heartbeat.hex")),
    ("fastdds-2.9.1-participant", include_str!("../../../testdata/fastdds-2.9.1-participant.hex")),
    ("fastdds-2.9.1-participant-gone", include_str!("../../../testdata/fastdds-2.9.1-participant-gone.hex")),
    ("fastdds-2.9.1-publication-gone", include_str!("../../../testdata/fastdds-2.9.1-publication-gone.hex")),
    ("fastdds-2.9.1-publications", include_str!("../../../testdata/fastdds-2.9.1-publications.hex")),
    ("fastdds-2.9.1-subscriptions", include_str!("../../../testdata/fastdds-2.9.1-subscriptions.hex")),
    ("fastdds-2.9.1-unregister", include_str!("../../../testdata/fastdds-2.9.1-unregister.hex")),
];

#[track_caller]
fn check_file(name: &str, expect: &str) {
    let (_, hex) = FILES.iter().find(|(file, _)| *file == name).unwrap();
    check(&bytes_of(hex), expect);
}

#[test]
fn print() {
    for (name, hex) in FILES {
        println!("== {name}\n{}", told(&bytes_of(hex)));
    }
}
