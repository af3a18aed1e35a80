//! Decoders of others that panic on damaged files: their panic as an error.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// True while a panic of this thread is expected, and nothing is to be printed about it.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does `decode`; an error where it panics. Other panics, and those of other threads, stay what they are.
pub fn guarded<T>(decode: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_GUARDED.get() {
                usual(info);
            }
        }));
    });
    IS_GUARDED.set(true);
    let decoded = panic::catch_unwind(AssertUnwindSafe(decode));
    IS_GUARDED.set(false);
    decoded.unwrap_or_else(|_| Err("damaged: its values do not fit their lengths".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(guarded(|| Ok(1)), Ok(1));
        let none: Vec<u8> = Vec::new();
        let refused = guarded(|| Ok(none[std::hint::black_box(3)]));
        assert!(refused.unwrap_err().contains("damaged"));
    }
}
