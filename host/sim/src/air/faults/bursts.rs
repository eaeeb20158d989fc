//! Loss in bursts: the Gilbert–Elliott channel.
//!
//! Each directed link is good or bad. A good link turns bad with probability $g$ a slot and a bad one good with $b$; a bad
//! link loses everything, a good one nothing. Bursts then last $1/b$ slots on average and the share lost is $p = g/(g+b)$.
//!
//! A link is looked at only when it carries something: after $\Delta$ slots it is bad with probability
//! $p + (s - p)(1 - g - b)^\Delta$, where $s$ is 1 if it was bad and 0 if not, so slots in between need no draws.

use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::rng::Stream;

/// The channels of all links.
#[derive(Clone, Debug)]
pub(in super::super) struct Bursts {
    loss: f64,
    /// 1 − g − b: how much a link remembers of the slot before.
    memory: f64,
    links: Vec<Option<Channel>>,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    slot: u32,
    is_bad: bool,
}

impl Bursts {
    /// Channels of `links` links that lose the share `loss` in bursts of `length` slots on average.
    pub(in super::super) fn new(loss: f64, length: f64, links: usize) -> Result<Self, Diagnostic> {
        let recover = 1.0 / length;
        let fail = recover * loss / (1.0 - loss);
        if fail > 1.0 {
            return Err(Diagnostic::new(
                format!(
                    "faults.burst_loss = {loss} cannot come in bursts of {length} rounds: there is hardly a round between them"
                ),
                format!("set faults.burst_rounds to at least {}", (10.0 * loss / (1.0 - loss)).ceil() / 10.0),
            ));
        }
        Ok(Self { loss, memory: 1.0 - fail - recover, links: vec![None; links] })
    }

    /// Whether `link` loses what it carries in `slot`.
    pub(in super::super) fn loses(&mut self, link: usize, slot: u32, stream: &mut Stream) -> bool {
        let chance = match self.links[link] {
            None => self.loss,
            Some(channel) if channel.slot == slot => return channel.is_bad,
            Some(channel) => {
                let state = if channel.is_bad { 1.0 } else { 0.0 };
                let slots = f64::from(slot.wrapping_sub(channel.slot));
                self.loss + (state - self.loss) * libm::pow(self.memory, slots)
            }
        };
        let is_bad = stream.uniform_f64() < chance;
        self.links[link] = Some(Channel { slot, is_bad });
        is_bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_shared::rng::Purpose;

    /// Share lost and mean length of a burst of one link, looked at in every `stride`-th slot.
    fn measured(loss: f64, length: f64, stride: usize) -> (f64, f64) {
        let mut bursts = Bursts::new(loss, length, 1).unwrap();
        let mut stream = Stream::new(5, 0, 0, Purpose::Air);
        let states: Vec<bool> =
            (0..400_000).step_by(stride).map(|slot| bursts.loses(0, slot, &mut stream)).collect();
        let lost = states.iter().filter(|&&is_bad| is_bad).count() as f64;
        let starts = states.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        (lost / states.len() as f64, lost / starts)
    }

    #[test]
    fn losses_and_bursts_are_as_asked() {
        for (loss, length) in [(0.1, 10.0), (0.3, 10.0), (0.5, 10.0), (0.2, 3.0), (0.5, 1.0), (0.9, 20.0)] {
            let (share, mean) = measured(loss, length, 1);
            assert!((share - loss).abs() < 0.02, "{share} lost instead of {loss}");
            assert!((mean / length - 1.0).abs() < 0.05, "bursts of {mean} instead of {length}");
        }
    }

    #[test]
    fn a_link_that_rests_has_the_same_loss() {
        let (share, _) = measured(0.3, 10.0, 7);
        assert!((share - 0.3).abs() < 0.02, "{share}");
    }

    #[test]
    fn frames_of_one_slot_fare_alike() {
        let mut bursts = Bursts::new(0.5, 2.0, 1).unwrap();
        let mut stream = Stream::new(5, 0, 0, Purpose::Air);
        for slot in 0..1000 {
            assert_eq!(bursts.loses(0, slot, &mut stream), bursts.loses(0, slot, &mut stream));
        }
    }

    #[test]
    fn bursts_too_short_for_their_loss_are_refused() {
        let message = Bursts::new(0.9, 2.0, 1).unwrap_err().to_string();
        assert!(message.contains("faults.burst_rounds to at least 9"), "{message}");
    }
}
