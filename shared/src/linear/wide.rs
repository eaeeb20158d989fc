//! Kernels for vector registers: they touch neighbouring elements together, so that a compiler may use those without changing a bit.
//! Always inlined: a host compiles its loops for the vector registers it finds, and the kernels with them.

use crate::scalar::Scalar;
use core::ops::Range;

/// How many rows a kernel carries in registers at a time.
const LANES: usize = 4;

/// `y += x`, over the shorter of both.
#[inline(always)]
pub fn add<S: Scalar>(x: &[S], y: &mut [S]) {
    zip_map_in_place([x], [y], |[x], [y]| [y + x]);
}

/// `out = x`, over the shorter of both. In registers, where `copy_from_slice` calls a function for rows of middling length.
#[inline(always)]
pub fn copy<S: Scalar>(x: &[S], out: &mut [S]) {
    zip_map_in_place([x], [out], |[x], _| [x]);
}

/// `y += a·x`, over the shorter of both.
#[inline(always)]
pub fn axpy<S: Scalar>(a: S, x: &[S], y: &mut [S]) {
    zip_map_in_place([x], [y], |[x], [y]| [y + a * x]);
}

/// `out = a·x`, over the shorter of both.
#[inline(always)]
pub fn scaled<S: Scalar>(a: S, x: &[S], out: &mut [S]) {
    zip_map_in_place([x], [out], |[x], _| [a * x]);
}

/// Replaces elements of the same number of all `out`, by what `change` makes of them and of those of all `given`; over the
/// shortest of all.
///
/// Blocks are fetched before any is written: then no compiler has to find out at run time whether slices overlap.
#[inline(always)]
pub fn zip_map_in_place<const GIVEN: usize, const OUT: usize, S: Scalar>(
    given: [&[S]; GIVEN],
    mut out: [&mut [S]; OUT],
    change: impl Fn([S; GIVEN], [S; OUT]) -> [S; OUT],
) {
    let length = given.iter().map(|given| given.len()).chain(out.iter().map(|out| out.len())).min();
    let length = length.unwrap_or(0);
    let first = change_blocks::<16, GIVEN, OUT, S>(given, &mut out, &change, 0..length);
    let first = change_blocks::<LANES, GIVEN, OUT, S>(given, &mut out, &change, first..length);
    change_blocks::<1, GIVEN, OUT, S>(given, &mut out, &change, first..length);
}

/// As many whole blocks of a range as there are; returns the first element that is left.
#[inline(always)]
fn change_blocks<const BLOCK: usize, const GIVEN: usize, const OUT: usize, S: Scalar>(
    given: [&[S]; GIVEN],
    out: &mut [&mut [S]; OUT],
    change: impl Fn([S; GIVEN], [S; OUT]) -> [S; OUT],
    range: Range<usize>,
) -> usize {
    let mut first = range.start;
    while first + BLOCK <= range.end {
        let mut fetched = [[S::ZERO; BLOCK]; GIVEN];
        for (block, given) in fetched.iter_mut().zip(given) {
            block.copy_from_slice(&given[first..][..BLOCK]);
        }
        let mut blocks = [[S::ZERO; BLOCK]; OUT];
        for (block, out) in blocks.iter_mut().zip(&*out) {
            block.copy_from_slice(&out[first..][..BLOCK]);
        }
        for lane in 0..BLOCK {
            let given = core::array::from_fn(|number| fetched[number][lane]);
            let changed = change(given, core::array::from_fn(|number| blocks[number][lane]));
            for (block, changed) in blocks.iter_mut().zip(changed) {
                block[lane] = changed;
            }
        }
        for (out, block) in out.iter_mut().zip(&blocks) {
            out[first..][..BLOCK].copy_from_slice(block);
        }
        first += BLOCK;
    }
    first
}

/// `⟨x, y⟩`, summed in four lanes that are added pairwise at the end.
#[inline(always)]
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

/// Rows of `M·x` from number `row` on, as many whole blocks as there are; returns the first that is left.
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
    // Tiles of five first: the paper's problem has five features, so that every x is read once. Four and one would read it twice.
    let column = column_blocks::<5, PAIRS, S>(pairs, 0, out);
    let column = column_blocks::<LANES, PAIRS, S>(pairs, column, out);
    column_blocks::<1, PAIRS, S>(pairs, column, out);
}

/// Sums from number `column` on, as many whole blocks as there are; returns the first that is left.
#[inline(always)]
fn column_blocks<const BLOCK: usize, const PAIRS: usize, S: Scalar>(
    pairs: [(&[S], &[S]); PAIRS],
    mut column: usize,
    out: &mut [S],
) -> usize {
    for block in out[column..].as_chunks_mut::<BLOCK>().0 {
        dots(pairs, column, block);
        column += BLOCK;
    }
    column
}

/// The sums of neighbouring columns, from number `first` on, with every part of an `x` fetched once for all of them.
#[inline(always)]
fn dots<const PAIRS: usize, const COLUMNS: usize, S: Scalar>(
    pairs: [(&[S], &[S]); PAIRS],
    first: usize,
    out: &mut [S; COLUMNS],
) {
    let mut lanes = [[S::ZERO; LANES]; COLUMNS];
    for (matrix, x) in pairs {
        let rows = x.len();
        let (x, _) = x.as_chunks::<LANES>();
        let mut columns: [&[[S; LANES]]; COLUMNS] = [&[]; COLUMNS];
        for (column, entries) in columns.iter_mut().enumerate() {
            *entries = &matrix[(first + column) * rows..][..rows].as_chunks().0[..x.len()];
        }
        for (block, x) in x.iter().enumerate() {
            for column in 0..COLUMNS {
                for lane in 0..LANES {
                    lanes[column][lane] += columns[column][block][lane] * x[lane];
                }
            }
        }
    }
    // `black_box` hides the number of columns. A compiler that knows it adds all columns at once across vector registers, and
    // transposes the lanes in memory for that, which takes longer than the products above. The order of additions is the same.
    for (sum, lanes) in out.iter_mut().zip(&lanes[..core::hint::black_box(COLUMNS)]) {
        *sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    }
    for (matrix, x) in pairs {
        let rows = x.len();
        let whole = rows - rows % LANES;
        for (column, sum) in out.iter_mut().enumerate() {
            let column = &matrix[(first + column) * rows..][..rows];
            for (&entry, &x) in column[whole..].iter().zip(&x[whole..]) {
                *sum += entry * x;
            }
        }
    }
}
