//! Memory in large pages.

use std::mem::MaybeUninit;
use std::sync::Arc;

/// So many zeroes, for which huge pages are asked where they fit.
pub(crate) fn zeroed_in_huge_pages(octets: usize) -> Arc<[u8]> {
    // Large memory comes from the kernel as it is: nothing is written yet, and no page taken.
    let mut memory = Arc::<[u8]>::new_zeroed_slice(octets);
    prefer_huge_pages(Arc::get_mut(&mut memory).expect("nobody else has it yet"));
    // SAFETY: zero is a valid octet, and all are zero.
    unsafe { memory.assume_init() }
}

/// A kernel without huge pages has none to give, and nothing depends on it.
fn prefer_huge_pages(memory: &mut [MaybeUninit<u8>]) {
    // SAFETY: the call takes no pointer, and an unknown name would only return -1.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Some(page) = usize::try_from(page).ok().filter(|page| page.is_power_of_two()) else { return };
    let before = memory.as_ptr().align_offset(page).min(memory.len());
    let pages = (memory.len() - before) / page;
    if pages > 0 {
        // SAFETY: whole pages within memory that is borrowed exclusively; the advice changes nothing of what they hold.
        unsafe { libc::madvise(memory[before..].as_mut_ptr().cast(), pages * page, libc::MADV_HUGEPAGE) };
    }
}
