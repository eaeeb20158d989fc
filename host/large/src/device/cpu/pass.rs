//! A program with the batches of all agents, and the memory in which it runs.

use std::sync::Mutex;

use crate::program::ModelProgram;
use crate::program::arena::Arena;
use crate::real::Real;

/// A program with the batch of every agent.
#[derive(Debug)]
pub struct CpuPass<S> {
    pub(super) ready: ProgramBuffers<S>,
    pub(super) agents: usize,
    pub(super) features: Vec<S>,
    pub(super) tokens: Vec<u32>,
    pub(super) lengths: Vec<u32>,
    pub(super) labels: Vec<u32>,
    pub(super) weights: Vec<S>,
    pub(super) losses: Vec<S>,
    pub(super) hits: Vec<S>,
}

/// A program and its intermediate buffers, which belong to threads, not agents.
#[derive(Debug)]
pub(super) struct ProgramBuffers<S> {
    pub(super) program: ModelProgram,
    pub(super) arena: Arena,
    /// Buffers no task uses now.
    pub(super) spare: Mutex<Vec<Vec<S>>>,
}

impl<S: Real> ProgramBuffers<S> {
    pub(super) fn take(&self) -> Vec<S> {
        let spare = self.spare.lock().expect("no task panics while it holds the lock").pop();
        spare.unwrap_or_else(|| vec![S::ZERO; self.arena.activation_words() + self.arena.exact_words()])
    }

    pub(super) fn give(&self, arena: Vec<S>) {
        self.spare.lock().expect("no task panics while it holds the lock").push(arena);
    }
}
