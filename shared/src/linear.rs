//! Linear algebra on slices, in a fixed order of operations.
//!
//! Slices rather than static matrices, so that an agent with sizes in its type and a simulator with
//! sizes from a file run the very same code. Matrices are column-major. Every kernel fixes the order
//! in which it adds and never fuses a multiplication with an addition. They are written twice, with the same bits: `wide` for
//! vector registers, `narrow` for a microcontroller, which has none and counts instructions and flash. Tests hold the two together.

#[cfg(any(test, microcontroller))]
#[cfg_attr(not(microcontroller), allow(unreachable_pub, reason = "here only the tests see it"))]
mod narrow;
#[cfg(any(test, not(microcontroller)))]
mod wide;

#[cfg(microcontroller)]
pub use narrow::{add, axpy, dot, mat_vec, mats_transposed_vecs, scaled, zip_map_in_place};
#[cfg(not(microcontroller))]
pub use wide::{add, axpy, copy, dot, mat_vec, mats_transposed_vecs, scaled, zip_map_in_place};

use crate::scalar::Scalar;

/// `out = Mᵀ·x` for a column-major `M` with `x.len()` rows and `out.len()` columns; every sum is a [`dot`].
#[inline(always)]
pub fn mat_transposed_vec<S: Scalar>(matrix: &[S], x: &[S], out: &mut [S]) {
    mats_transposed_vecs([(matrix, x)], out);
}

/// `‖x‖²`.
#[inline(always)]
pub fn squared_norm<S: Scalar>(x: &[S]) -> S {
    dot(x, x)
}

/// Returns the index of the first invalid word. Tests all words without a branch first, because almost always all are valid.
#[inline(always)]
pub fn first_invalid<S: Copy>(words: &[S], is_valid: impl Fn(S) -> bool) -> Option<usize> {
    let mut are_all = true;
    for &word in words {
        are_all &= is_valid(word);
    }
    if are_all { None } else { words.iter().position(|&word| !is_valid(word)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_remainder_agree_with_the_plain_sum() {
        let rows = 7;
        let matrix: [f64; 21] = core::array::from_fn(|i| i as f64 - 9.5);
        let x = [1.0, -2.0, 0.5];
        let mut out = [0.0; 7];
        mat_vec(&matrix, &x, &mut out);
        for (row, out) in out.iter().enumerate() {
            let plain: f64 = (0..3).map(|c| matrix[c * rows + row] * x[c]).sum();
            assert_eq!(*out, plain);
        }
    }

    #[test]
    fn every_transposed_sum_is_a_dot() {
        let matrix: [f32; 54] = core::array::from_fn(|i| libm::sinf(i as f32));
        let x: [f32; 9] = core::array::from_fn(|i| libm::cosf(i as f32));
        let mut out = [0.0; 6];
        mat_transposed_vec(&matrix, &x, &mut out);
        for (column, out) in matrix.chunks_exact(9).zip(out) {
            assert_eq!(out, dot(column, &x));
        }
    }

    #[test]
    fn dot_covers_every_element() {
        let numbers: [f32; 10] = core::array::from_fn(|i| i as f32);
        for length in 0..10 {
            let squares: usize = (0..length).map(|i| i * i).sum();
            assert_eq!(dot(&numbers[..length], &numbers[..length]), squares as f32);
        }
    }

    #[test]
    fn wide_and_narrow_kernels_give_the_same_bits() {
        let numbers: [f32; 200] = core::array::from_fn(|i| libm::sinf(i as f32));
        for (rows, columns) in [(20, 5), (7, 3), (16, 4), (3, 1), (1, 6)] {
            let (matrix, x) = (&numbers[..rows * columns], &numbers[60..60 + columns]);
            let [mut one, mut other] = [[0.0; 20]; 2];
            wide::mat_vec(matrix, x, &mut one[..rows]);
            narrow::mat_vec(matrix, x, &mut other[..rows]);
            assert_eq!(one, other);
            let pairs =
                [(matrix, &numbers[90..90 + rows]), (&numbers[11..][..rows * columns], &numbers[..rows])];
            wide::mats_transposed_vecs(pairs, &mut one[..columns]);
            narrow::mats_transposed_vecs(pairs, &mut other[..columns]);
            assert_eq!(one, other);
            let (left, right) = (&numbers[..rows], &numbers[30..][..rows]);
            assert_eq!(wide::dot(left, right), narrow::dot(left, right));
            wide::axpy(0.3, &numbers[..rows], &mut one);
            narrow::axpy(0.3, &numbers[..rows], &mut other);
            assert_eq!(one, other);
            wide::scaled(0.7, &numbers[..rows], &mut one);
            narrow::scaled(0.7, &numbers[..rows], &mut other);
            assert_eq!(one, other);
            wide::add(&numbers[9..][..rows], &mut one);
            narrow::add(&numbers[9..][..rows], &mut other);
            assert_eq!(one, other);
            let turn = |[x]: [f32; 1], [y, z]: [f32; 2]| [x * y - z, x + z];
            let ([mut first, mut second], [mut third, mut fourth]) = ([one, one], [one, one]);
            wide::zip_map_in_place([left], [&mut first[..rows], &mut second[..rows]], turn);
            narrow::zip_map_in_place([left], [&mut third[..rows], &mut fourth[..rows]], turn);
            assert_eq!((first, second), (third, fourth));
        }
    }

    #[test]
    fn the_shortest_slice_decides() {
        let turn = |[x]: [f32; 1], [y, z]: [f32; 2]| [x + y, x + z];
        let (mut one, mut other) = ([1.0; 20], [2.0; 18]);
        wide::zip_map_in_place([&[3.0; 17]], [&mut one, &mut other], turn);
        narrow::zip_map_in_place([&[3.0; 17]], [&mut one, &mut other], turn);
        assert_eq!((one[16], one[17], other[16], other[17]), (7.0, 1.0, 8.0, 2.0));
    }

    #[test]
    fn empty_slices_are_harmless() {
        mat_vec::<f32>(&[], &[], &mut []);
        mat_transposed_vec::<f32>(&[], &[], &mut [0.0]);
        assert_eq!(dot::<f32>(&[], &[]), 0.0);
    }
}
