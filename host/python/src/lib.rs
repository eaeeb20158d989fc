//! The native half of the Python package `fabswarm`.
//!
//! A run is stepped on a thread of its own, without Python's lock; Python waits for its rows and for its end, and looks for
//! Ctrl-C while it does. What is worth a name to a user has one in the Python half, which this one only serves.

mod arrays;
mod keywords;
mod live_run;
mod python_method;
mod python_problem;
mod recorded;
mod run_thread;
#[cfg(feature = "large")]
mod training;

/// `fabswarm._native`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::keywords::ScenarioError;
    #[pymodule_export]
    use super::live_run::{LiveRun, RunError};
    #[pymodule_export]
    use super::python_method::ProblemShare;
    #[pymodule_export]
    use super::recorded::load;
}
