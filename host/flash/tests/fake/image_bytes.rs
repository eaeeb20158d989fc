//! The bytes of fake images.

/// Bytes that repeat nowhere.
pub(crate) fn image_bytes(length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
