//! Where large agents are computed: the flags `--device` and `--precision`.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches};

use super::flags;
use fabswarm_large::device::cuda::{Gpu, Precision};

/// The device that `--device` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceChoice {
    /// A GPU where one works, else the CPU.
    Auto,
    Cpu,
    /// The GPU of that number; any where there is none.
    Cuda(Option<usize>),
}

pub(super) fn arguments() -> [Arg; 2] {
    let device = "Where to compute: auto, cpu, cuda or cuda:N; auto takes a GPU where one works";
    [
        flags::option("device", "DEVICE", device).default_value("auto").value_parser(parse),
        precision_argument(),
    ]
}

/// `--precision WORD`.
pub(super) fn precision_argument() -> Arg {
    flags::option("precision", "WORD", "Precision of matrix products on a GPU; state is always f32")
        .default_value(Precision::default().name())
        .value_parser(PossibleValuesParser::new(Precision::NAMES.map(|(name, _)| name)))
}

fn parse(text: &str) -> Result<DeviceChoice, String> {
    match (text, text.strip_prefix("cuda:")) {
        ("auto", _) => Ok(DeviceChoice::Auto),
        ("cpu", _) => Ok(DeviceChoice::Cpu),
        ("cuda", _) => Ok(DeviceChoice::Cuda(None)),
        (_, Some(number)) => match number.parse() {
            Ok(number) => Ok(DeviceChoice::Cuda(Some(number))),
            Err(_) => Err(format!("`{number}` is not the number of a GPU; the first is cuda:0")),
        },
        _ => Err("use auto, cpu, cuda, or cuda:N for the GPU of that number".to_owned()),
    }
}

pub(super) fn choice(matches: &ArgMatches) -> DeviceChoice {
    matches.get_one("device").copied().unwrap_or(DeviceChoice::Auto)
}

pub(super) fn precision(matches: &ArgMatches) -> Precision {
    matches.get_one::<String>("precision").and_then(|name| Precision::named(name)).unwrap_or_default()
}

/// The GPU, where one is asked for or there is one to take.
pub(super) fn gpu(matches: &ArgMatches) -> Result<Option<Gpu>> {
    Ok(match choice(matches) {
        DeviceChoice::Cpu => None,
        DeviceChoice::Auto => Gpu::open(0).ok(),
        DeviceChoice::Cuda(number) => Some(Gpu::open(number.unwrap_or(0))?),
    })
}

/// The values of both flags for a host of this machine by its number: hosts share the GPUs there are, one each in turn.
#[cfg(feature = "mesh")]
pub(super) fn of_local_hosts(matches: &ArgMatches) -> Result<impl Fn(usize) -> [String; 2] + use<>> {
    let (gpus, precision) = (Gpu::count(), precision(matches).name().to_owned());
    let choice = choice(matches);
    if let DeviceChoice::Cuda(_) = choice {
        // The error says what is missing.
        gpu(matches)?;
    }
    Ok(move |host: usize| {
        let device = match choice {
            DeviceChoice::Cuda(Some(number)) => format!("cuda:{number}"),
            DeviceChoice::Cuda(None) | DeviceChoice::Auto if gpus > 0 => format!("cuda:{}", host % gpus),
            _ => "cpu".to_owned(),
        };
        [device, precision.clone()]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_by_word_and_number() {
        assert_eq!(parse("auto"), Ok(DeviceChoice::Auto));
        assert_eq!(parse("cuda"), Ok(DeviceChoice::Cuda(None)));
        assert_eq!(parse("cuda:12"), Ok(DeviceChoice::Cuda(Some(12))));
        for wrong in ["", "gpu", "cuda:", "cuda:-1", "CUDA", "cpu:0"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
