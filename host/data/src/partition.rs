//! Dirichlet non-IID partition: for each class, shares p ~ Dir(ρ, …, ρ) over the agents decide how its samples are split.
//!
//! Small ρ gives agents of few classes, large ρ equal agents. Arithmetic goes through `libm`: a seed means one partition everywhere.

use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::rng::{Purpose, Stream};

/// The use of a random stream of this crate: all share one purpose and differ in the round, which is unused while data is dealt out.
#[derive(Clone, Copy)]
pub(super) enum DataStream {
    ClassOrder,
    Split,
    Corruption,
    Shares { attempt: u32 },
}

impl DataStream {
    pub(super) fn stream(self, seed: u64, index: u32) -> Stream {
        let round = match self {
            Self::ClassOrder => 0,
            Self::Split => 1,
            Self::Corruption => 2,
            Self::Shares { attempt } => 3 + attempt,
        };
        Stream::new(seed, index, round, Purpose::Data)
    }
}

/// An agent with fewer samples has no validation sample at nine to one.
pub(super) const FEWEST_SAMPLES: usize = 10;
const ATTEMPTS: u32 = 1000;

/// Deals samples to agents: for each agent the indices of its samples, class by class.
///
/// Shares are drawn again, for all classes, until no agent has fewer than [`FEWEST_SAMPLES`].
///
/// # Errors
/// When there are too few samples, or ρ is too small for that many agents.
pub(super) fn dirichlet(
    labels: &[u8],
    classes: usize,
    agents: usize,
    alpha: f64,
    seed: u64,
) -> Result<Vec<Vec<u32>>, Diagnostic> {
    if !(alpha.is_finite() && alpha > 0.0) {
        return Err(Diagnostic::new(
            format!("training.dirichlet_alpha = {alpha} is not a Dirichlet concentration"),
            "give a number above 0",
        ));
    }
    if agents == 0 || labels.len() < agents.saturating_mul(FEWEST_SAMPLES) {
        return Err(Diagnostic::new(
            format!("{} samples for {agents} agents: each needs {FEWEST_SAMPLES}", labels.len()),
            "lower swarm.agents, or take more samples",
        ));
    }
    let mut of_class: Vec<Vec<u32>> = vec![Vec::new(); classes];
    for (index, label) in (0..).zip(labels) {
        let class = of_class.get_mut(usize::from(*label)).ok_or_else(|| {
            let what = format!("label {label} of sample {index}, but there are {classes} classes");
            Diagnostic::new(what, "see that images and labels belong together")
        })?;
        class.push(index);
    }
    for (class, indices) in (0..).zip(&mut of_class) {
        shuffle(indices, &mut DataStream::ClassOrder.stream(seed, class));
    }
    for attempt in 0..ATTEMPTS {
        let mut dealt: Vec<Vec<u32>> = vec![Vec::new(); agents];
        for (class, indices) in (0..).zip(&of_class) {
            let shares = draw_shares(agents, alpha, &mut DataStream::Shares { attempt }.stream(seed, class));
            let (count, mut start, mut sum) = (indices.len(), 0, 0.0);
            for (agent, share) in shares.iter().enumerate() {
                sum += share;
                let end = if agent + 1 == agents { count } else { (sum * count as f64) as usize };
                let end = end.clamp(start, count);
                dealt[agent].extend(&indices[start..end]);
                start = end;
            }
        }
        if dealt.iter().all(|indices| indices.len() >= FEWEST_SAMPLES) {
            return Ok(dealt);
        }
    }
    let what = format!(
        "training.dirichlet_alpha = {alpha} leaves some of {agents} agents with fewer than {FEWEST_SAMPLES} of {} samples in each of {ATTEMPTS} draws",
        labels.len()
    );
    Err(Diagnostic::new(what, "raise training.dirichlet_alpha, lower swarm.agents, or take more samples"))
}

/// Puts a list into random order (Fisher and Yates).
pub fn shuffle(list: &mut [u32], stream: &mut Stream) {
    for last in (1..list.len()).rev() {
        // Samples are indexed by u32, so their number fits.
        let other = stream.below(last as u32 + 1) as usize;
        list.swap(last, other);
    }
}

/// Draws from the symmetric Dirichlet distribution, as gamma variates over their sum.
fn draw_shares(count: usize, alpha: f64, stream: &mut Stream) -> Vec<f64> {
    // In logarithms: for small alpha every variate may underflow, and 0/0 is NaN.
    let logarithms: Vec<f64> = (0..count).map(|_| draw_ln_gamma(alpha, stream)).collect();
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logarithms.iter().map(|logarithm| libm::exp(logarithm - largest)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// Draws the logarithm of a gamma variate (Marsaglia and Tsang 2000; below shape 1 by their boost).
fn draw_ln_gamma(shape: f64, stream: &mut Stream) -> f64 {
    if shape < 1.0 {
        let uniform = 1.0 - stream.uniform_f64();
        return draw_ln_gamma(shape + 1.0, stream) + libm::log(uniform) / shape;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let normal = stream.gaussian_f64();
        let cube = 1.0 + c * normal;
        if cube <= 0.0 {
            continue;
        }
        let v = cube * cube * cube;
        let uniform = 1.0 - stream.uniform_f64();
        if libm::log(uniform) < 0.5 * normal * normal + d - d * v + d * libm::log(v) {
            return libm::log(d) + libm::log(v);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn gamma_variates_have_mean_and_variance_of_their_shape() {
        for shape in [0.1, 0.5, 1.0, 4.0] {
            let mut stream = DataStream::ClassOrder.stream(1, 0);
            let count = 100_000;
            let draws: Vec<f64> = (0..count).map(|_| draw_ln_gamma(shape, &mut stream).exp()).collect();
            let mean = draws.iter().sum::<f64>() / f64::from(count);
            let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / f64::from(count);
            assert!((mean / shape - 1.0).abs() < 0.04, "mean {mean} of shape {shape}");
            assert!((variance / shape - 1.0).abs() < 0.1, "variance {variance} of shape {shape}");
        }
    }

    #[test]
    fn small_rho_makes_agents_differ_and_large_rho_makes_them_alike() {
        let labels: Vec<u8> = (0..20_000_u32).map(|index| (index % 10) as u8).collect();
        let largest_share = |alpha| {
            let dealt = dirichlet(&labels, 10, 10, alpha, 3).unwrap();
            let shares = dealt.iter().map(|indices| {
                let most =
                    (0..10).map(|class| indices.iter().filter(|i| **i % 10 == class).count()).max().unwrap();
                most as f64 / indices.len() as f64
            });
            shares.sum::<f64>() / 10.0
        };
        let (apart, between, alike) = (largest_share(0.1), largest_share(1.0), largest_share(1000.0));
        assert!(apart > 0.45 && between < apart && alike < 0.12, "{apart} {between} {alike}");
    }

    #[test]
    fn invalid_partition_is_refused_with_numbers() {
        let labels = vec![0; 100];
        let message = |agents, alpha| dirichlet(&labels, 1, agents, alpha, 0).unwrap_err().to_string();
        assert!(message(10, 0.001).contains("raise training.dirichlet_alpha"));
        assert!(message(11, 1.0).contains("100 samples for 11 agents"));
        assert!(message(0, 1.0).contains("0 agents"));
        assert!(message(2, f64::NAN).contains("NaN"));
        assert!(message(2, -1.0).contains("-1"));
        assert!(dirichlet(&[3; 100], 2, 2, 1.0, 0).unwrap_err().to_string().contains("label 3"));
    }

    proptest! {
        #[test]
        fn every_sample_is_dealt_once(seed: u64, agents in 1_usize..6, alpha in 0.2_f64..10.0, count in 200_u32..400) {
            let labels: Vec<u8> = (0..count).map(|index| (index * 7 % 3) as u8).collect();
            if let Ok(dealt) = dirichlet(&labels, 3, agents, alpha, seed) {
                prop_assert_eq!(&dealt, &dirichlet(&labels, 3, agents, alpha, seed).unwrap());
                prop_assert!(dealt.iter().all(|indices| indices.len() >= FEWEST_SAMPLES));
                let mut all: Vec<u32> = dealt.into_iter().flatten().collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..count).collect::<Vec<u32>>());
            }
        }

        #[test]
        fn shares_sum_to_one_for_every_concentration(seed: u64, exponent in -6.0_f64..6.0) {
            let shares = draw_shares(7, 10_f64.powf(exponent), &mut DataStream::ClassOrder.stream(seed, 0));
            prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
        }
    }
}
