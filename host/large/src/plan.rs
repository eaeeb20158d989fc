//! How much memory a run will take, known before any of it is taken.

use fabswarm_diagnostic::Diagnostic;

use crate::device::{Block, Device};
use crate::fab::{FabConfig, PushSumRule};
use crate::models::Model;
use fabswarm_sim::record::{bytes, counted};

/// Part of the free memory a run may plan for; the rest is for the driver, evaluation and fragmentation.
const USABLE: f64 = 0.95;

/// Bytes by what they are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Agents that are computed here.
    pub agents: usize,
    /// y, z, trackers, one or two gradients and, with momentum, m of all agents; with Push-ASGD, an earlier estimate and its gradient.
    pub state: u64,
    /// Batches and intermediate buffers of all passes.
    pub activations: u64,
    /// With a ledger: mass that waits on links, and the broadcasts of as many rounds as a frame may be late.
    pub ledger: u64,
    /// Samples of all agents.
    pub data: u64,
    /// Bytes that the device adds to take memory in whole pieces.
    pub rounding: u64,
}

impl MemoryPlan {
    /// The plan of a host that computes the own agents of `config`, and keeps what it hears of the others, with `samples` samples of
    /// data in the device's memory.
    pub fn new<D: Device>(device: &D, model: &Model, config: &FabConfig, samples: usize) -> Self {
        let (own, stride) = (config.own, model.program(1).layout.stride());
        let agent_words = (config.packed(stride).words() / config.agents.max(1)) as u64;
        let (words, heard) =
            (own.agents as u64 * agent_words, (config.agents - own.agents) as u64 * agent_words);
        let word = size_of::<D::Scalar>() as u64;
        let mut activations =
            device.pass_bytes(&model.program(config.validation_batch + config.training_batch), own.agents);
        if config.is_bilevel() {
            activations += device.pass_bytes(&model.program(config.z_batch()), own.agents);
        }
        // Of an agent on another host there are decisions, and trackers or what they wait for on links.
        let (heard_state, heard_ledger) = match &config.ledger {
            _ if own.agents == 0 => (0, 0),
            None => (heard * (device.decision_bytes() + word), 0),
            Some(ledger) => (0, heard * (ledger.depth() + own.agents) as u64 * word),
        };
        let gradients = if config.mixes_at_once() { 1 } else { 2 };
        let momenta = u64::from(config.momentum != 0.0);
        let own_state = words * (device.decision_bytes() + (1 + gradients + momenta) * word);
        let earlier = match config.push_sum {
            Some(PushSumRule::PushAsgd { .. }) => words * (device.decision_bytes() + word),
            _ => 0,
        };
        let own_ledger = config.ledger.as_ref().map_or(0, |ledger| ledger.bytes(config.agents, words, word));
        let mut plan = MemoryPlan {
            agents: own.agents,
            state: own_state + heard_state + earlier,
            activations,
            ledger: own_ledger + heard_ledger,
            data: samples as u64 * (model.input().width() as u64 + 4) * word,
            rounding: 0,
        };
        plan.rounding = plan.total().next_multiple_of(device.piece_bytes()) - plan.total();
        plan
    }

    /// All bytes.
    pub fn total(&self) -> u64 {
        self.state + self.activations + self.ledger + self.data + self.rounding
    }

    /// Whether the run fits the device's free memory.
    ///
    /// # Errors
    /// When it does not; the message names the largest number of agents that would.
    pub fn check<D: Device>(
        &self,
        device: &D,
        model: &Model,
        config: &FabConfig,
        samples: usize,
    ) -> Result<(), Diagnostic> {
        let Some(free) = device.free_bytes() else { return Ok(()) };
        let fits = |plan: &MemoryPlan| plan.total() as f64 <= USABLE * free as f64;
        if fits(self) {
            return Ok(());
        }
        let plan_of = |agents: usize| {
            let config = FabConfig { agents, own: Block::whole(agents), ..config.clone() };
            MemoryPlan::new(device, model, &config, samples)
        };
        // Memory grows with the number of agents: the largest that fits lies between none and what was asked for.
        let (mut most, mut too_many) = (0, config.agents);
        while too_many - most > 1 {
            let middle = (most + too_many) / 2;
            if fits(&plan_of(middle)) {
                most = middle;
            } else {
                too_many = middle;
            }
        }
        Err(Diagnostic::new(
            format!("the run needs {self}, but {} has {} free", device.name(), bytes(free)),
            match most {
                0 => "not even one agent fits: take a smaller model, a smaller batch or another device"
                    .to_owned(),
                most => format!("`agents = {most}` would fit, or take a smaller batch"),
            },
        ))
    }
}

impl std::fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} for {}: ", bytes(self.total()), counted(self.agents, "agent"))?;
        let parts = [
            ("state", self.state),
            ("activations", self.activations),
            ("ledger", self.ledger),
            ("data", self.data),
            ("whole pieces", self.rounding),
        ];
        let named = parts.into_iter().filter(|(_, count)| *count > 0);
        f.write_str(
            &named.map(|(name, count)| format!("{name} {}", bytes(count))).collect::<Vec<_>>().join(", "),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::Cpu;
    use crate::fab::{Ledger, UpperLevel};

    fn config(agents: usize) -> FabConfig {
        FabConfig::new(agents, UpperLevel::Cleaning { regularisation: 0.002 }, 64, 64)
    }

    #[test]
    fn state_and_ledger_are_so_many_vectors() {
        let of = |config: FabConfig| {
            let plan = MemoryPlan::new(&Cpu::<f32>::new(), &Model::mlp(784, 256, 10), &config, 0);
            [plan.state, plan.ledger]
        };
        let vectors = |counts: [u64; 2]| counts.map(|count| count * 10 * 203_584 * 4);
        // y, z, two trackers and one gradient for each of them; then two for momentum.
        assert_eq!(of(config(10)), vectors([6, 0]));
        assert_eq!(of(FabConfig { momentum: 0.7, ..config(10) }), vectors([8, 0]));
        // A ledger keeps the last gradient too, y and z for each link, and four vectors for each round a frame may be late.
        let with_ledger = |late_rounds| {
            let ledger = Ledger { keep: 0.98, late_rounds, audiences: Vec::new() };
            of(FabConfig { ledger: Some(ledger), ..config(10) })
        };
        assert_eq!(with_ledger(0), vectors([8, (9 + 2) * 2]));
        assert_eq!(with_ledger(5), vectors([8, (9 + 12) * 2]));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        let device = Cpu::<f32>::new();
        let model = Model::mlp(784, 256, 10);
        let config = config(100_000_000);
        let refusal =
            MemoryPlan::new(&device, &model, &config, 0).check(&device, &model, &config, 0).unwrap_err();
        let most: usize = refusal.remedy().unwrap().split(['=', '`']).nth(2).unwrap().trim().parse().unwrap();
        assert!(most > 10, "{refusal}");
    }
}
