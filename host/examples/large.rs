//! Checks and times the batched engine:
//!
//!     cargo run --release --example large -- check cuda
//!     cargo run --release --example large -- mlp cpu 10
//!     cargo run --release --example large -- bert bf16 10
//!     cargo run --release --example large -- mixing 10 109489152
//!
//! Devices: `cpu`, `f32`, `tf32`, `bf16` (the last three on CUDA).

use std::error::Error;

use fabswarm::large::bench;
use fabswarm::large::conformance::{Check, follows_shared, gradients, mixing};
use fabswarm::large::device::cpu::Cpu;
use fabswarm::large::device::cuda::{Cuda, Precision};
use fabswarm::large::models::{Encoder, Model};

fn precision(name: &str) -> Result<Precision, Box<dyn Error>> {
    match name {
        "f32" => Ok(Precision::F32),
        "tf32" => Ok(Precision::Tf32),
        "bf16" => Ok(Precision::Bf16),
        other => Err(format!("`{other}` is no precision; take f32, tf32 or bf16").into()),
    }
}

fn check() -> Result<(), Box<dyn Error>> {
    let mut checks: Vec<Check> = Vec::new();
    checks.extend(follows_shared(|| Cuda::new(Precision::F32), 2e-4)?);
    let device = Cuda::new(Precision::F32)?;
    println!("{device:?}");
    checks.extend(mixing(&device, 1e-5)?);
    for (precision, tolerance) in [(Precision::F32, 1e-4), (Precision::Tf32, 1e-2), (Precision::Bf16, 5e-2)] {
        let device = Cuda::new(precision)?;
        let named = |check: Check| Check { what: format!("{precision:?} {}", check.what), ..check };
        checks.extend(gradients(&device, tolerance)?.into_iter().map(named));
    }
    checks.iter().for_each(|check| println!("{check}"));
    let failed = checks.iter().filter(|check| !check.passed()).count();
    if failed > 0 { Err(format!("{failed} of {} checks failed", checks.len()).into()) } else { Ok(()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let text = |at: usize| args.get(at).map_or("", String::as_str);
    let number =
        |at: usize, default: usize| args.get(at).and_then(|word| word.parse().ok()).unwrap_or(default);
    match text(0) {
        "check" => check(),
        "mlp" => {
            let (model, agents, rounds) =
                (Model::Mlp { inputs: 784, hidden: 256, classes: 10 }, number(2, 10), number(3, 30));
            for chooses in [false, true] {
                let measured = match text(1) {
                    "cpu" => bench::round(Cpu::<f32>::new(), &model, agents, 64, rounds, chooses)?,
                    name => bench::round(Cuda::new(precision(name)?)?, &model, agents, 64, rounds, chooses)?,
                };
                println!("engine=fabswarm-{} model=mlp {measured}", text(1));
            }
            Ok(())
        }
        "bert" => {
            let (model, agents) = (Model::Encoder(Encoder::bert_base(128)), number(2, 10));
            let measured = bench::gradient(Cuda::new(precision(text(1))?)?, &model, agents, 4, 10)?;
            println!("engine=fabswarm-{} model=bert-base {measured}", text(1));
            let measured = bench::round(Cuda::new(precision(text(1))?)?, &model, agents, 4, 10, false)?;
            println!("engine=fabswarm-{} model=bert-base {measured}", text(1));
            Ok(())
        }
        "mixing" => {
            let (agents, words) = (number(1, 10), number(2, 109_489_152));
            let rates = bench::bandwidths(&Cuda::new(Precision::F32)?, agents, words)?;
            let share =
                |rate: f64| format!("{:.2} TB/s ({:.1} % of copy)", rate / 1e12, 100.0 * rate / rates.copy);
            println!(
                "job=mixing agents={agents} words={words} copy {:.2} TB/s, pull {}, push {}, push with regulariser {}",
                rates.copy / 1e12,
                share(rates.pull),
                share(rates.push),
                share(rates.push_with_regulariser)
            );
            Ok(())
        }
        other => Err(format!("`{other}` is no job; take check, mlp, bert or mixing").into()),
    }
}
