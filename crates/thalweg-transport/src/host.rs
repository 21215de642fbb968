//! Which host this is, as far as loopback addresses reach.

use std::fs;
use std::os::unix::fs::MetadataExt;

use thalweg_base::rng::Rng;

/// Sixteen bytes that two processes share exactly when they reach each other through 127.0.0.1: the same running kernel
/// and the same network namespace. Two containers on one machine are two hosts, unless they share their network.
pub fn id() -> [u8; 16] {
    let kernel = read_first(&["/proc/sys/kernel/random/boot_id", "/etc/machine-id", "/proc/sys/kernel/hostname"]);
    let namespace = fs::metadata("/proc/self/ns/net").map_or((0, 0), |ns| (ns.dev(), ns.ino()));
    mix(&kernel, namespace)
}

/// The name that the system gives this host; `None` where it gives none.
pub fn name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn read_first(paths: &[&str]) -> Vec<u8> {
    paths.iter().find_map(|path| fs::read(path).ok().filter(|text| !text.is_empty())).unwrap_or_default()
}

/// Spreads both identities over sixteen bytes; a plain mixing function is enough, since no attacker gains by a collision.
fn mix(kernel: &[u8], (device, inode): (u64, u64)) -> [u8; 16] {
    let absorb = |start: u64| {
        let mut state = start;
        for byte in kernel {
            state = Rng::new(state ^ u64::from(*byte)).next_u64();
        }
        Rng::new(Rng::new(state ^ device).next_u64() ^ inode).next_u64()
    };
    let mut id = [0; 16];
    id[..8].copy_from_slice(&absorb(0x7468_616c_7765_6731).to_be_bytes());
    id[8..].copy_from_slice(&absorb(0x7468_616c_7765_6732).to_be_bytes());
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_and_network_namespace_both_tell_hosts_apart() {
        let here = mix(b"boot", (4, 4_026_531_840));
        assert_eq!(here, mix(b"boot", (4, 4_026_531_840)));
        assert_ne!(here, mix(b"boot", (4, 4_026_531_841)));
        assert_ne!(here, mix(b"bood", (4, 4_026_531_840)));
        assert_eq!(id(), id());
    }
}
