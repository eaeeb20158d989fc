//! Kernels for vector registers: they touch neighbouring elements together, so that a compiler may use those without changing a bit.
//! Always inlined: a host compiles its loops for the vector registers it finds, and the kernels with them.

use crate::scalar::Scalar;

/// How many rows a kernel carries in registers at a time.
const LANES: usize = 4;

/// How many elements a loop takes at a time where their order does not matter. Vectors here are short, and a loop that a
/// compiler widens by itself would leave most of a short vector to its scalar end.
const WIDE: usize = 8;

/// `y += a·x`, over the shorter of both.
#[inline(always)]
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
#[inline(always)]
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
#[inline(always)]
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
#[inline(always)]
pub fn mat_vec<S: Scalar>(matrix: &[S], x: &[S], out: &mut [S]) {
    let rows = out.len();
    let matrix = &matrix[..rows * x.len()];
    let row = row_blocks::<16, S>(matrix, x, 0, out);
    let row = row_blocks::<LANES, S>(matrix, x, row, out);
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

/// `out = Σ Mᵀ·x` over pairs of a column-major `M` and an `x`, all `M` of `x.len()` rows and `out.len()` columns. Each sum is
/// the [`dot`] of all columns one after the other with all `x`.
#[inline(always)]
pub fn mats_transposed_vecs<const PAIRS: usize, S: Scalar>(pairs: [(&[S], &[S]); PAIRS], out: &mut [S]) {
    let column = column_blocks::<5, PAIRS, S>(pairs, 0, out);
    let column = column_blocks::<LANES, PAIRS, S>(pairs, column, out);
    column_blocks::<1, PAIRS, S>(pairs, column, out);
}

/// Sums from number `column` on, as many whole blocks as there are; answers the first that is left. Five first: the paper's
/// features take one pass.
#[inline(always)]
fn column_blocks<const BLOCK: usize, const PAIRS: usize, S: Scalar>(
    pairs: [(&[S], &[S]); PAIRS],
    mut column: usize,
    out: &mut [S],
) -> usize {
    for block in out[column..].as_chunks_mut::<BLOCK>().0 {
        *block = dots(pairs, column);
        column += BLOCK;
    }
    column
}

/// The sums of neighbouring columns, from number `first` on, with every part of an `x` fetched once for all of them.
#[inline(always)]
fn dots<const PAIRS: usize, const COLUMNS: usize, S: Scalar>(
    pairs: [(&[S], &[S]); PAIRS],
    first: usize,
) -> [S; COLUMNS] {
    let mut lanes = [[S::ZERO; LANES]; COLUMNS];
    for (matrix, x) in pairs {
        let rows = x.len();
        let matrix: [&[S]; COLUMNS] =
            core::array::from_fn(|column| &matrix[(first + column) * rows..][..rows]);
        let (x, _) = x.as_chunks::<LANES>();
        let matrix = matrix.map(|column| &column.as_chunks::<LANES>().0[..x.len()]);
        for (block, x) in x.iter().enumerate() {
            for column in 0..COLUMNS {
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
