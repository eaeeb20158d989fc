//! Kernels for a microcontroller: four sums by name, which stay in registers at any level of optimisation, and one copy of each in
//! flash.

use crate::scalar::Scalar;

const LANES: usize = 4;

/// Replaces elements of the same number of all `out`, by what `change` makes of them and of those of all `given`; over the
/// shortest of all.
#[inline(always)]
pub fn zip_map_in_place<const GIVEN: usize, const OUT: usize, S: Scalar>(
    given: [&[S]; GIVEN],
    out: [&mut [S]; OUT],
    change: impl Fn([S; GIVEN], [S; OUT]) -> [S; OUT],
) {
    let length = given.iter().map(|given| given.len()).chain(out.iter().map(|out| out.len())).min();
    let length = length.unwrap_or(0);
    // As long as the loop is, so that nothing in it need be checked.
    let given = given.map(|given| &given[..length]);
    let mut out = out.map(|out| &mut out[..length]);
    for number in 0..length {
        let changed = change(given.map(|given| given[number]), out.each_ref().map(|out| out[number]));
        for (out, changed) in out.iter_mut().zip(changed) {
            out[number] = changed;
        }
    }
}

/// `y += x`, over the shorter of both.
#[inline(never)]
pub fn add<S: Scalar>(x: &[S], y: &mut [S]) {
    map_by_fours(x, y, |x, y| y + x);
}

/// `y += a·x`, over the shorter of both.
#[inline(never)]
pub fn axpy<S: Scalar>(a: S, x: &[S], y: &mut [S]) {
    map_by_fours(x, y, |x, y| y + a * x);
}

/// `out = a·x`, over the shorter of both.
#[inline(never)]
pub fn scaled<S: Scalar>(a: S, x: &[S], out: &mut [S]) {
    map_by_fours(x, out, |x, _| a * x);
}

/// Replaces each `y` by what `change` makes of it and its `x`.
#[inline(always)]
fn map_by_fours<S: Scalar>(x: &[S], y: &mut [S], change: impl Fn(S, S) -> S) {
    let length = x.len().min(y.len());
    let (x, x_rest) = x[..length].as_chunks::<LANES>();
    let (y, y_rest) = y[..length].as_chunks_mut::<LANES>();
    for (y, &[x0, x1, x2, x3]) in y.iter_mut().zip(x) {
        let [y0, y1, y2, y3] = *y;
        *y = [change(x0, y0), change(x1, y1), change(x2, y2), change(x3, y3)];
    }
    for (y, &x) in y_rest.iter_mut().zip(x_rest) {
        *y = change(x, *y);
    }
}

/// `⟨x, y⟩`, summed in four lanes that are added pairwise at the end.
pub fn dot<S: Scalar>(x: &[S], y: &[S]) -> S {
    let length = x.len().min(y.len());
    let mut sum = [S::ZERO];
    mats_transposed_vecs([(&x[..length], &y[..length])], &mut sum);
    sum[0]
}

/// `out = M·x` for a column-major `M` with `out.len()` rows and `x.len()` columns.
#[inline(never)]
pub fn mat_vec<S: Scalar>(matrix: &[S], x: &[S], out: &mut [S]) {
    let rows = out.len();
    let mut row = 0;
    let (blocks, rest) = out.as_chunks_mut::<{ 2 * LANES }>();
    for block in blocks {
        let (mut s0, mut s1, mut s2, mut s3) = (S::ZERO, S::ZERO, S::ZERO, S::ZERO);
        let (mut s4, mut s5, mut s6, mut s7) = (S::ZERO, S::ZERO, S::ZERO, S::ZERO);
        let mut columns = &matrix[row..];
        for &x in x {
            if let Some(&[m0, m1, m2, m3, m4, m5, m6, m7]) = columns.first_chunk() {
                s0 += m0 * x;
                s1 += m1 * x;
                s2 += m2 * x;
                s3 += m3 * x;
                s4 += m4 * x;
                s5 += m5 * x;
                s6 += m6 * x;
                s7 += m7 * x;
            }
            columns = columns.get(rows..).unwrap_or_default();
        }
        *block = [s0, s1, s2, s3, s4, s5, s6, s7];
        row += 2 * LANES;
    }
    for out in rest {
        let mut sum = S::ZERO;
        for (column, &x) in matrix.chunks_exact(rows).zip(x) {
            sum += column[row] * x;
        }
        *out = sum;
        row += 1;
    }
}

/// `out = Σ Mᵀ·x` over pairs of a column-major `M` and an `x`, all `M` of `x.len()` rows and `out.len()` columns. Each sum is
/// the [`dot`] of all columns one after the other with all `x`.
#[inline(never)]
pub fn mats_transposed_vecs<const PAIRS: usize, S: Scalar>(pairs: [(&[S], &[S]); PAIRS], out: &mut [S]) {
    for (column, out) in out.iter_mut().enumerate() {
        let (mut s0, mut s1, mut s2, mut s3) = (S::ZERO, S::ZERO, S::ZERO, S::ZERO);
        for (matrix, x) in &pairs {
            let column = matrix[column * x.len()..].as_chunks().0;
            for (&[x0, x1, x2, x3], &[m0, m1, m2, m3]) in x.as_chunks().0.iter().zip(column) {
                s0 += m0 * x0;
                s1 += m1 * x1;
                s2 += m2 * x2;
                s3 += m3 * x3;
            }
        }
        *out = (s0 + s1) + (s2 + s3);
    }
    for (matrix, x) in &pairs {
        let whole = x.len() - x.len() % LANES;
        if whole < x.len() {
            for (column, out) in out.iter_mut().enumerate() {
                for (&entry, &x) in matrix[column * x.len()..][whole..].iter().zip(&x[whole..]) {
                    *out += entry * x;
                }
            }
        }
    }
}
