//! How a command ended.

use std::process::Output;

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Checks the exit code, and that standard error contains `message`.
#[track_caller]
pub(crate) fn assert_ends(output: &Output, code: i32, message: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(message), "{}\ndoes not contain\n{message}", text(&output.stderr));
}
