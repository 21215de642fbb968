//! Memory of large pictures.

use std::sync::Arc;

use crate::sys;

/// So many zeroes, in huge pages as far as the system gives them to who asks (`transparent_hugepage/enabled` is `madvise` or `always`):
/// a picture of 5 MB in pages of 4 KiB needs 1,300 translations of addresses each time that it is copied. What is shorter than a huge page
/// lies in usual ones.
pub fn zeroed(octets: usize) -> Arc<[u8]> {
    if octets < HUGE_PAGE_OCTETS { Arc::from(vec![0; octets]) } else { sys::memory::zeroed_in_huge_pages(octets) }
}

/// Octets of a huge page of most processors.
const HUGE_PAGE_OCTETS: usize = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_of_its_length() {
        for octets in [0, 1, HUGE_PAGE_OCTETS - 1, HUGE_PAGE_OCTETS, 5_184_001] {
            let mut memory = zeroed(octets);
            assert!(memory.len() == octets && memory.iter().all(|octet| *octet == 0), "{octets}");
            Arc::get_mut(&mut memory).unwrap().fill(7);
            assert!(memory.iter().all(|octet| *octet == 7), "{octets}");
        }
    }
}
