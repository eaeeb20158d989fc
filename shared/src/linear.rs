//! Linear algebra on slices, in a fixed order of operations.
//!
//! Slices rather than static matrices, so that an agent with sizes in its type and a simulator with
//! sizes from a file run the very same code. Matrices are column-major. Every kernel fixes the order
//! in which it adds, never fuses a multiplication with an addition, and touches neighbouring elements
//! together, so that a compiler may use vector registers without changing a bit. A host inlines them always: it compiles
//! its loops for the vector registers it finds, and the kernels with them. A microcontroller has one of each, in 2 KiB less
//! flash.

use crate::scalar::Scalar;

/// How many rows a kernel carries in registers at a time.
const LANES: usize = 4;

/// How many rows, and columns of a transposed matrix, a product carries at a time where there are as many: what fills vector
/// registers, or what leaves a microcontroller's flash to others.
const ROWS: usize = if cfg!(target_os = "none") { LANES } else { 16 };
const COLUMNS: usize = if cfg!(target_os = "none") { 1 } else { LANES };

/// How many elements a loop takes at a time where their order does not matter. Vectors here are short, and a loop that a
/// compiler widens by itself would leave most of a short vector to its scalar end.
const WIDE: usize = 8;

/// `y += a·x`, over the shorter of both.
#[cfg_attr(not(target_os = "none"), inline(always))]
#[cfg_attr(target_os = "none", inline(never))]
pub fn axpy<S: Scalar>(a: S, x: &[S], y: &mut [S]) {
    let length = x.len().min(y.len());
    let (x_wide, x_rest) = x[..length].as_chunks::<WIDE>();
    let (y_wide, y_rest) = y[..length].as_chunks_mut::<WIDE>();
    for (y, x) in y_wide.iter_mut().zip(x_wide) {
        for lane in 0..WIDE {
            y[lane] += a * x[lane];
        }
    }
    for (y, &x) in y_rest.iter_mut().zip(x_rest) {
        *y += a * x;
    }
}

/// `out = a·x`, over the shorter of both.
#[cfg_attr(not(target_os = "none"), inline(always))]
#[cfg_attr(target_os = "none", inline(never))]
pub fn scaled<S: Scalar>(a: S, x: &[S], out: &mut [S]) {
    let length = x.len().min(out.len());
    let (x_wide, x_rest) = x[..length].as_chunks::<WIDE>();
    let (out_wide, out_rest) = out[..length].as_chunks_mut::<WIDE>();
    for (out, x) in out_wide.iter_mut().zip(x_wide) {
        for lane in 0..WIDE {
            out[lane] = a * x[lane];
        }
    }
    for (out, &x) in out_rest.iter_mut().zip(x_rest) {
        *out = a * x;
    }
}

/// `⟨x, y⟩`, summed in four lanes that are added pairwise at the end.
#[cfg_attr(not(target_os = "none"), inline(always))]
#[cfg_attr(target_os = "none", inline(never))]
#[must_use]
pub fn dot<S: Scalar>(x: &[S], y: &[S]) -> S {
    let mut lanes = [S::ZERO; LANES];
    let x_blocks = x.chunks_exact(LANES);
    let y_blocks = y.chunks_exact(LANES);
    let x_rest = x_blocks.remainder();
    let y_rest = y_blocks.remainder();
    for (x, y) in x_blocks.zip(y_blocks) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    let mut sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    for (&x, &y) in x_rest.iter().zip(y_rest) {
        sum += x * y;
    }
    sum
}

/// `out = M·x` for a column-major `M` with `out.len()` rows and `x.len()` columns.
#[cfg_attr(not(target_os = "none"), inline(always))]
#[cfg_attr(target_os = "none", inline(never))]
pub fn mat_vec<S: Scalar>(matrix: &[S], x: &[S], out: &mut [S]) {
    let rows = out.len();
    let matrix = &matrix[..rows * x.len()];
    let mut row = row_blocks::<ROWS, S>(matrix, x, 0, out);
    if ROWS > LANES {
        row = row_blocks::<LANES, S>(matrix, x, row, out);
    }
    row_blocks::<1, S>(matrix, x, row, out);
}

/// Rows of `M·x` from number `row` on, as many whole blocks as there are; answers the first that is left.
#[inline(always)]
fn row_blocks<const BLOCK: usize, S: Scalar>(matrix: &[S], x: &[S], mut row: usize, out: &mut [S]) -> usize {
    let rows = out.len();
    for block in out[row..].as_chunks_mut::<BLOCK>().0 {
        let mut sums = [S::ZERO; BLOCK];
        let mut columns = &matrix[row..];
        for &x in x {
            if let Some(column) = columns.first_chunk::<BLOCK>() {
                for lane in 0..BLOCK {
                    sums[lane] += column[lane] * x;
                }
            }
            columns = columns.get(rows..).unwrap_or_default();
        }
        *block = sums;
        row += BLOCK;
    }
    row
}

/// `out = Mᵀ·x` for a column-major `M` with `x.len()` rows and `out.len()` columns; every sum is a [`dot`].
#[inline(always)]
pub fn mat_transposed_vec<S: Scalar>(matrix: &[S], x: &[S], out: &mut [S]) {
    mats_transposed_vecs([(matrix, x)], out);
}

/// `out = Σ Mᵀ·x` over pairs of a column-major `M` and an `x`, all `M` of `x.len()` rows and `out.len()` columns. Each sum is
/// the [`dot`] of all columns one after the other with all `x`.
#[cfg_attr(not(target_os = "none"), inline(always))]
#[cfg_attr(target_os = "none", inline(never))]
pub fn mats_transposed_vecs<const PAIRS: usize, S: Scalar>(pairs: [(&[S], &[S]); PAIRS], out: &mut [S]) {
    let mut column = 0;
    let (blocks, rest) = out.as_chunks_mut::<COLUMNS>();
    for out in blocks {
        *out = dots(pairs, column);
        column += COLUMNS;
    }
    for out in rest {
        [*out] = dots(pairs, column);
        column += 1;
    }
}

/// The sums of neighbouring columns, from number `first` on, with every part of an `x` fetched once for all of them.
#[inline(always)]
fn dots<const PAIRS: usize, const COUNT: usize, S: Scalar>(
    pairs: [(&[S], &[S]); PAIRS],
    first: usize,
) -> [S; COUNT] {
    let mut lanes = [[S::ZERO; LANES]; COUNT];
    for (matrix, x) in pairs {
        let rows = x.len();
        let matrix: [&[S]; COUNT] = core::array::from_fn(|column| &matrix[(first + column) * rows..][..rows]);
        let (x, _) = x.as_chunks::<LANES>();
        let matrix = matrix.map(|column| &column.as_chunks::<LANES>().0[..x.len()]);
        for (block, x) in x.iter().enumerate() {
            for column in 0..COUNT {
                for lane in 0..LANES {
                    lanes[column][lane] += matrix[column][block][lane] * x[lane];
                }
            }
        }
    }
    let mut sums = lanes.map(|lanes| (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]));
    for (matrix, x) in pairs {
        let rows = x.len();
        let whole = rows - rows % LANES;
        for (column, sum) in sums.iter_mut().enumerate() {
            let column = &matrix[(first + column) * rows..][..rows];
            for (&entry, &x) in column[whole..].iter().zip(&x[whole..]) {
                *sum += entry * x;
            }
        }
    }
    sums
}

/// `‖x‖²`.
#[cfg_attr(not(target_os = "none"), inline(always))]
#[cfg_attr(target_os = "none", inline(never))]
#[must_use]
pub fn squared_norm<S: Scalar>(x: &[S]) -> S {
    dot(x, x)
}

/// Where the first word is that is not as it should be. Looks at all of them at once, as they almost always are.
#[cfg_attr(not(target_os = "none"), inline(always))]
#[cfg_attr(target_os = "none", inline(never))]
#[must_use]
pub fn first_exception<S: Copy>(words: &[S], is_as_it_should_be: impl Fn(S) -> bool) -> Option<usize> {
    let mut are_all = true;
    for &word in words {
        are_all &= is_as_it_should_be(word);
    }
    if are_all { None } else { words.iter().position(|&word| !is_as_it_should_be(word)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    // 3 rows, 2 columns, column-major, so that the remainder path is taken; 5×2 takes both.
    #[test]
    fn products_match_a_hand_calculation() {
        let matrix = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut out = [0.0; 3];
        mat_vec(&matrix, &[10.0, 1.0], &mut out);
        assert_eq!(out, [14.0, 25.0, 36.0]);
        let mut out = [0.0; 2];
        mat_transposed_vec(&matrix, &[1.0, 10.0, 100.0], &mut out);
        assert_eq!(out, [321.0, 654.0]);
    }

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
        for len in 0..10 {
            let ones = [1.0f32; 10];
            assert_eq!(dot(&ones[..len], &ones[..len]), len as f32);
        }
    }

    #[test]
    fn empty_slices_are_harmless() {
        mat_vec::<f32>(&[], &[], &mut []);
        mat_transposed_vec::<f32>(&[], &[], &mut [0.0]);
        assert_eq!(dot::<f32>(&[], &[]), 0.0);
    }
}
