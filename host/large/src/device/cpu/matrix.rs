//! Matrix products.

use gemm_common::Parallelism;

use super::agent::{AgentPass, Workspace};
use crate::program::op::Operand;
use crate::program::{Gemm, MemorySpace};
use crate::real::Real;

/// All products of one operation.
pub(super) fn gemm<S: Real>(agent: &mut AgentPass<'_, S>, memory: &mut Workspace<'_, S>, g: &Gemm) {
    let read = (agent.parameters, agent.features);
    let (c, others) = match g.c.view.place {
        MemorySpace::Gradient => (&mut agent.gradient[g.c.view.offset..], memory.all()),
        _ => memory.split(g.c.view),
    };
    let (a, b) = (others.read(g.a.view, read), others.read(g.b.view, read));
    for outer in 0..g.outer {
        for inner in 0..g.inner {
            let at = |operand: &Operand| outer * operand.outer + inner * operand.inner;
            product(g, &a[at(&g.a)..], &b[at(&g.b)..], &mut c[at(&g.c)..]);
        }
    }
}

/// Row and column stride of an operand as it is read.
fn strides(operand: &Operand) -> (usize, usize) {
    if operand.is_transposed { (1, operand.row) } else { (operand.row, 1) }
}

/// `c = alpha · a b + beta · c`.
#[expect(unsafe_code, reason = "the gemm crate takes pointers; the lengths are checked here")]
fn product<S: Real>(g: &Gemm, a: &[S], b: &[S], c: &mut [S]) {
    let ((a_row, a_column), (b_row, b_column)) = (strides(&g.a), strides(&g.b));
    let last =
        |rows: usize, columns: usize, row: usize, column: usize| (rows - 1) * row + (columns - 1) * column;
    assert!(g.m > 0 && g.n > 0 && g.k > 0, "an empty product");
    assert!(last(g.m, g.k, a_row, a_column) < a.len(), "the left operand is too short");
    assert!(last(g.k, g.n, b_row, b_column) < b.len(), "the right operand is too short");
    assert!(last(g.m, g.n, g.c.row, 1) < c.len(), "the result is too short");
    // The kernels want a column-major result: `c` of several columns is computed as its transpose, `cᵀ = bᵀ aᵀ`.
    let (a, b) =
        ((a.as_ptr(), a_column as isize, a_row as isize), (b.as_ptr(), b_column as isize, b_row as isize));
    let transposed = |(at, column, row)| (at, row, column);
    let c_row = g.c.row as isize;
    let (m, n, c_strides, a, b) = if c_row > 1 {
        (g.n, g.m, (c_row, 1), transposed(b), transposed(a))
    } else {
        (g.m, g.n, (1, c_row), a, b)
    };
    // SAFETY: the last element each stride reaches lies inside its slice (asserted above), and `c` is borrowed exclusively.
    unsafe {
        S::gemm_kernel()(
            m,
            n,
            g.k,
            c.as_mut_ptr(),
            c_strides.0,
            c_strides.1,
            g.beta != 0.0,
            a.0,
            a.1,
            a.2,
            b.0,
            b.1,
            b.2,
            S::from_f64(g.beta),
            S::from_f64(g.alpha),
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
