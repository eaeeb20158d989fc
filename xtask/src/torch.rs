//! PyTorch, for the lines of the documentation that load a model into it.

use anyhow::Result;

use crate::step::{self, succeeds};
use crate::{install, python};

/// Debian's package: a tenth of the wheel, which brings CUDA.
const PACKAGE: &str = "python3-torch";
const SYSTEM: &str = "/usr/bin/python3";

/// An interpreter that has PyTorch and safetensors: that of the system, or after installing [`PACKAGE`] where there is one. `None`
/// where there is no such package, which the caller reports.
pub(crate) fn interpreter() -> Result<Option<String>> {
    let has_torch = || succeeds(SYSTEM, &["-c", "import torch"]);
    if !has_torch() {
        if !succeeds("apt-cache", &["show", PACKAGE]) {
            return Ok(None);
        }
        install::announce(PACKAGE, "apt", 150, 120);
        let install = ["install", "-y", "-qq", "--no-install-recommends", PACKAGE];
        if step::as_root("apt-get", &install).is_err() || !has_torch() {
            return Ok(None);
        }
    }
    let environment = step::root().join("target/torch-venv");
    let program = environment.join("bin/python").to_string_lossy().into_owned();
    if !succeeds(&program, &["-c", "import torch, safetensors"]) {
        // Its pip is that of the other environment: Debian's Python may come without one.
        let folder = environment.to_string_lossy();
        step::run(SYSTEM, &["-m", "venv", "--without-pip", "--system-site-packages", &folder])?;
        let install = ["-m", "pip", "--python", &program, "install", "--quiet", "--no-deps", "safetensors"];
        step::run(&python::interpreter()?, &install)?;
    }
    Ok(Some(program))
}
