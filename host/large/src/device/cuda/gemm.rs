//! Matrix products by cuBLAS.
//!
//! cuBLAS is column-major: a row-major `C = A B` is `Cᵀ = Bᵀ Aᵀ` to it, so operands change places and nothing is copied.

use std::ffi::c_void;

use cudarc::cublas::{result, sys};

use super::launch::PassLaunch;
use super::pass::{Grid, Spot};
use super::{Precision, during};
use crate::device::Result;
use crate::program::Gemm;
use crate::program::op::Operand;

fn operation(operand: &Operand) -> sys::cublasOperation_t {
    if operand.is_transposed {
        sys::cublasOperation_t::CUBLAS_OP_T
    } else {
        sys::cublasOperation_t::CUBLAS_OP_N
    }
}

fn kind(spot: Spot) -> sys::cudaDataType {
    if spot.is_narrow { sys::cudaDataType::CUDA_R_16BF } else { sys::cudaDataType::CUDA_R_32F }
}

impl PassLaunch<'_> {
    /// Enqueues one product for all agents.
    pub(super) unsafe fn gemm(&self, gemm: &Gemm, grid: Option<&Grid>) -> Result<()> {
        let [a, b, c] = [gemm.a, gemm.b, gemm.c].map(|operand| self.product_spot(operand.view));
        let (alpha, beta) = (gemm.alpha as f32, gemm.beta as f32);
        let (alpha, beta) =
            (std::ptr::from_ref(&alpha).cast::<c_void>(), std::ptr::from_ref(&beta).cast::<c_void>());
        let compute = match self.device.precision {
            Precision::Tf32 => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            Precision::F32 | Precision::Bf16 => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        let handle = *self.device.blas[self.group % 2].handle();
        let (m, n, k) = (gemm.n as i32, gemm.m as i32, gemm.k as i32);
        let algorithm = sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT;
        let Some(grid) = grid else {
            // SAFETY: addresses come from live allocations whose sizes the program's layout and arena fix.
            let result = unsafe {
                result::gemm_strided_batched_ex(
                    handle,
                    operation(&gemm.b),
                    operation(&gemm.a),
                    m,
                    n,
                    k,
                    alpha,
                    b.address as *const c_void,
                    kind(b),
                    gemm.b.row as i32,
                    b.model as i64,
                    a.address as *const c_void,
                    kind(a),
                    gemm.a.row as i32,
                    a.model as i64,
                    beta,
                    c.address as *mut c_void,
                    kind(c),
                    gemm.c.row as i32,
                    c.model as i64,
                    self.pass.agents as i32,
                    compute,
                    algorithm,
                )
            };
            return during("multiplying matrices", result);
        };
        let [left, right, out] = [0, 1, 2].map(|operand| grid.addresses.at(operand * grid.count));
        // SAFETY: as above; the addresses were computed for this pass, which owns the buffers.
        let status = unsafe {
            sys::cublasGemmBatchedEx(
                handle,
                operation(&gemm.b),
                operation(&gemm.a),
                m,
                n,
                k,
                alpha,
                right as *const *const c_void,
                kind(b),
                gemm.b.row as i32,
                left as *const *const c_void,
                kind(a),
                gemm.a.row as i32,
                beta,
                out as *const *mut c_void,
                kind(c),
                gemm.c.row as i32,
                grid.count as i32,
                compute,
                algorithm,
            )
        };
        during("multiplying matrices", status.result())
    }
}
