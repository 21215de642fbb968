//! What a thread keeps from one call to the next, so that it need not be allocated again.

use std::cell::Cell;
use std::thread::LocalKey;

/// Takes what the thread keeps. One that is ending has nothing any more: the application may hold a writer in a variable of the
/// thread, which is dropped after these.
#[inline]
pub(crate) fn take<T: Default>(place: &'static LocalKey<Cell<T>>) -> T {
    place.try_with(Cell::take).unwrap_or_default()
}

/// Keeps `value` for the next call; a thread that is ending drops it.
#[inline]
pub(crate) fn keep<T>(place: &'static LocalKey<Cell<T>>, value: T) {
    _ = place.try_with(|kept| kept.set(value));
}
