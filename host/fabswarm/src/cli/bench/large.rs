//! `fabswarm bench large`: checks and times the batched engine.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command, builder::PossibleValuesParser, value_parser};

use super::super::{device, flags};
use fabswarm_large::bench::{self, Measurement};
use fabswarm_large::conformance::{
    Check, follows_agents, follows_push_sum, follows_shared, gradients, mixing,
};
use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::device::cuda::{Cuda, Precision};
use fabswarm_large::models::{BertEncoder, Model};

/// Samples an agent takes a round, as the paper has them.
const MLP_BATCH: usize = 64;
const BERT_BATCH: usize = 4;
const BERT_TOKENS: usize = 128;

pub(super) fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        flags::option(name, "N", help).default_value(default).value_parser(value_parser!(u32).range(1..))
    };
    Command::new("large")
        .about("Check or time large agents on synthetic data; benches/peers/torch_fab.py puts PyTorch beside it")
        .arg(
            Arg::new("job")
                .required(true)
                .value_parser(PossibleValuesParser::new(["check", "mlp", "bert", "minilm", "levels", "mixing"]))
                .help("Check a device against the CPU in f64, or time MLP rounds, BERT-base, gradients of MiniLM, both levels in one launch (GPU only), or mixing (GPU only)"),
        )
        .arg(
            flags::option("device", "WORD", "Where to compute")
                .default_value("cpu")
                .value_parser(PossibleValuesParser::new(["cpu", "cuda"])),
        )
        .arg(device::precision_argument())
        .arg(number("agents", "10", "Agents of the swarm"))
        .arg(number("rounds", "60", "Rounds or gradients to time"))
        .arg(number("words", "109489152", "Scalars an agent mixes"))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let number = |name| matches.get_one::<u32>(name).map_or(1, |&number| number as usize);
    let word = |name| matches.get_one::<String>(name).map_or("", String::as_str);
    let (agents, rounds, is_gpu) = (number("agents"), number("rounds"), word("device") == "cuda");
    let precision = device::precision(matches);
    let engine = if is_gpu { word("precision") } else { "cpu" };
    let show =
        |model: &str, measured: Measurement| outln!("engine=fabswarm-{engine} model={model} {measured}");
    let mlp = Model::mlp(784, 256, 10);
    let bert = Model::Encoder(BertEncoder::bert_base(BERT_TOKENS));
    let cuda = || Cuda::new(precision);
    let gradient = |model: &Model| {
        if is_gpu {
            bench::gradient(cuda()?, "gradient", model, agents, &[BERT_BATCH], rounds)
        } else {
            bench::gradient(Cpu::<f32>::new(), "gradient", model, agents, &[BERT_BATCH], rounds)
        }
    };
    match word("job") {
        "check" => return check(is_gpu),
        "mlp" => {
            for chooses in [false, true] {
                let measured = if is_gpu {
                    bench::round(cuda()?, &mlp, agents, MLP_BATCH, rounds, chooses)?
                } else {
                    bench::round(Cpu::<f32>::new(), &mlp, agents, MLP_BATCH, rounds, chooses)?
                };
                show("mlp", measured);
            }
        }
        "bert" => {
            show("bert-base", gradient(&bert)?);
            if is_gpu {
                show("bert-base", bench::round(cuda()?, &bert, agents, BERT_BATCH, rounds, false)?);
            }
        }
        "minilm" => show("minilm", gradient(&Model::Encoder(BertEncoder::minilm(BERT_TOKENS)))?),
        "levels" if is_gpu => {
            for (name, model, batch) in [("mlp", &mlp, MLP_BATCH), ("bert-base", &bert, BERT_BATCH)] {
                let both = bench::levels(cuda, model, agents, batch, rounds)?;
                both.into_iter().for_each(|measured| show(name, measured));
            }
        }
        "levels" => bail!("a CPU has no launches to share: add `--device cuda`"),
        _ if is_gpu => show_mixing(agents, number("words"))?,
        _ => bail!("mixing is timed against a GPU's copy: add `--device cuda`"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints how fast a GPU mixes, and what part of its copy that is.
fn show_mixing(agents: usize, words: usize) -> Result<()> {
    let (copy, ways) = bench::bandwidths(&Cuda::new(Precision::F32)?, agents, words)?;
    outln!("job=mixing agents={agents} words={words} copy {:.2} TB/s", copy / 1e12);
    for (name, rate) in ways {
        outln!("  {name}: {:.2} TB/s, {:.1} % of copy", rate / 1e12, 100.0 * rate / copy);
    }
    Ok(())
}

/// Runs the conformance suite and prints its results.
fn check(is_gpu: bool) -> Result<ExitCode> {
    let mut checks: Vec<Check> = Vec::new();
    if is_gpu {
        checks.extend(follows_shared(|| Cuda::new(Precision::F32), 2e-4)?);
        checks.extend(follows_push_sum(|| Cuda::new(Precision::F32), 1e-5)?);
        checks.push(follows_agents(Cuda::new(Precision::F32)?)?);
        checks.extend(mixing(&Cuda::new(Precision::F32)?, 1e-5)?);
        // Ten and eight bits of mantissa, through as many products as the models have.
        for (precision, tolerance) in
            [(Precision::F32, 1e-4), (Precision::Tf32, 1e-2), (Precision::Bf16, 5e-2)]
        {
            let named = |check: Check| Check { what: format!("{precision:?} {}", check.what), ..check };
            checks.extend(gradients(&Cuda::new(precision)?, tolerance)?.into_iter().map(named));
        }
    } else {
        checks.extend(follows_shared(|| Ok(Cpu::<f64>::new()), 1e-9)?);
        checks.extend(follows_shared(|| Ok(Cpu::<f32>::new()), 2e-4)?);
        checks.extend(follows_push_sum(|| Ok(Cpu::<f32>::new()), 1e-5)?);
        checks.push(follows_agents(Cpu::<f64>::new())?);
        checks.extend(mixing(&Cpu::<f32>::new(), 1e-5)?);
        checks.extend(gradients(&Cpu::<f32>::new(), 1e-4)?);
    }
    checks.iter().for_each(|check| outln!("{check}"));
    let failed = checks.iter().filter(|check| !check.passed()).count();
    outln!("{} checks, {failed} failed", checks.len());
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
