//! The range of every number of a scenario.

use std::fmt;

use toml_edit::Value;

/// The range of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    /// A whole number from the first to the second.
    Whole(i64, i64),
    /// A number above 0.
    Positive,
    /// A number at or above 0.
    NotNegative,
    /// A number at or above 1.
    AtLeastOne,
    /// A number from 0 to 1.
    Share,
    /// A number from 0 up to but not 1.
    BelowOne,
    /// A number from 0 up to but not 1, or -1 for a value that follows from other keys.
    BelowOneOrChosen,
    /// Any finite number.
    Finite,
}

impl Limit {
    /// Whether `value` keeps to it.
    pub(super) fn allows(self, value: &Value) -> bool {
        let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        let Some(number) = number.filter(|number| number.is_finite()) else {
            return false;
        };
        match self {
            Self::Whole(least, most) => {
                value.as_integer().is_some_and(|whole| (least..=most).contains(&whole))
            }
            Self::Positive => number > 0.0,
            Self::NotNegative => number >= 0.0,
            Self::AtLeastOne => number >= 1.0,
            Self::Share => (0.0..=1.0).contains(&number),
            Self::BelowOne => (0.0..1.0).contains(&number),
            Self::BelowOneOrChosen => number == -1.0 || (0.0..1.0).contains(&number),
            Self::Finite => true,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(least, i64::MAX) => write!(f, "a whole number of at least {least}"),
            Self::Whole(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Positive => f.write_str("a number above 0"),
            Self::NotNegative => f.write_str("a number of at least 0"),
            Self::AtLeastOne => f.write_str("a number of at least 1"),
            Self::Share => f.write_str("a number from 0 to 1"),
            Self::BelowOne => f.write_str("a number of at least 0 and below 1"),
            Self::BelowOneOrChosen => f.write_str("-1, or a number of at least 0 and below 1"),
            Self::Finite => f.write_str("a finite number"),
        }
    }
}

/// Sizes that a problem's memory grows with; beyond it a typing error is likelier than a wish.
const SIZE: Limit = Limit::Whole(1, 100_000);

/// The most that a count of rounds may be.
const MOST: i64 = u32::MAX as i64;

/// The limits of all numbers, by their keys.
const LIMITS: &[(&[&str], Limit)] = &[
    (&["seed"], Limit::Whole(0, i64::MAX)),
    (&["problem_seed", "network_seed"], Limit::Whole(-1, i64::MAX)),
    (&["swarm.agents"], Limit::Whole(1, 1_000_000)),
    (&["swarm.clock_spread"], Limit::BelowOne),
    (&["frames.late_rounds"], Limit::Whole(0, 1000)),
    (&["frames.send_threshold"], Limit::NotNegative),
    (&["algorithm.gather_rounds"], Limit::Whole(-1, MOST)),
    (&["algorithm.descend_rounds"], Limit::Whole(1, MOST)),
    (&["algorithm.inner_rounds"], Limit::Whole(1, 10_000)),
    (&["algorithm.give_up_after"], Limit::Whole(-1, MOST)),
    (&["swarm.rounds"], Limit::Whole(1, MOST)),
    (&["policy_evaluation.states", "policy_evaluation.features"], SIZE),
    (&["policy_evaluation.discount"], Limit::BelowOne),
    (&["policy_evaluation.regularisation"], Limit::NotNegative),
    (&["policy_evaluation.upper_weight", "policy_evaluation.lower_weight"], Limit::Positive),
    (&["policy_evaluation.reward_noise"], Limit::NotNegative),
    (&["hyper_tuning.features", "hyper_tuning.train_samples", "hyper_tuning.validation_samples"], SIZE),
    (&["hyper_cleaning.features", "hyper_cleaning.train_samples", "hyper_cleaning.validation_samples"], SIZE),
    // A label is a byte, and so is the number of a sensor.
    (&["hyper_tuning.classes", "hyper_cleaning.classes"], Limit::Whole(2, 256)),
    (&["sensor_trust.sensors"], Limit::Whole(1, 256)),
    (&["hyper_tuning.corruption", "hyper_cleaning.corruption"], Limit::Share),
    (&["hyper_tuning.initial_tau", "hyper_cleaning.regularisation"], Limit::NotNegative),
    (&["sensor_trust.readings_per_sensor", "sensor_trust.calibrated_readings"], SIZE),
    (&["sensor_trust.basis"], SIZE),
    (&["sensor_trust.faulty_share"], Limit::Share),
    (&["sensor_trust.fault_bias"], Limit::Finite),
    (&["sensor_trust.noise", "sensor_trust.regularisation"], Limit::NotNegative),
    (&["algorithm.lambda", "algorithm.eta_y", "algorithm.eta_z"], Limit::Positive),
    (&["algorithm.eta_x"], Limit::NotNegative),
    (&["algorithm.self_weight"], Limit::BelowOneOrChosen),
    (&["algorithm.momentum"], Limit::BelowOne),
    (&["network.edge_probability"], Limit::Share),
    (&["network.phase_rounds"], Limit::Whole(1, MOST)),
    // All links of a window are looked at before the first round.
    (&["network.connectivity_window"], Limit::Whole(1, 10_000)),
    (&["network.blocks"], Limit::Whole(1, 1_000_000)),
    (&["network.exchange_every"], Limit::Whole(1, 10_000)),
    (&["motion.area_m", "motion.speed_m_s", "motion.spacing_m", "motion.round_ms"], Limit::Positive),
    (&["motion.path_loss_exponent", "motion.shadowing_s", "motion.steepness_db"], Limit::Positive),
    (&["motion.height_m", "motion.power_spread_db", "motion.shadowing_db"], Limit::NotNegative),
    (&["motion.power_dbm", "motion.reference_loss_db", "motion.sensitivity_dbm"], Limit::Finite),
    (&["radio.clock_ppm"], Limit::Whole(0, 200)),
    (&["radio.hops"], Limit::Whole(1, 100)),
    (&["radio.spreading"], Limit::Whole(7, 12)),
    (&["radio.bandwidth_khz"], Limit::Whole(125, 500)),
    (&["radio.reach_m", "radio.duty_percent"], Limit::Positive),
    (&["radio.compute_ms", "radio.period_ms"], Limit::NotNegative),
    (&["faults.iid_loss", "faults.burst_loss", "faults.duplication"], Limit::BelowOne),
    (&["faults.reordering", "faults.bit_corruption"], Limit::Share),
    (&["intruder.replay", "intruder.wrong_key", "intruder.relay"], Limit::Share),
    (&["intruder.frames_per_round"], Limit::Whole(1, 10_000)),
    (&["intruder.ambush_frames"], Limit::Whole(0, 10_000)),
    (&["intruder.memory_frames"], Limit::Whole(2, 1_000_000)),
    // More than two may take all the room that a receiver has for one sender.
    (&["intruder.forged_fragments"], Limit::Whole(0, 2)),
    (&["faults.burst_rounds"], Limit::AtLeastOne),
    (&["faults.delay_rounds"], Limit::Whole(0, 10_000)),
    (&["training.model_width", "training.batch"], SIZE),
    // A sentence has a begin and an end.
    (&["training.sequence"], Limit::Whole(2, 100_000)),
    (&["training.dropout"], Limit::BelowOne),
    (&["training.dirichlet_alpha"], Limit::Positive),
    (&["training.validation_one_in"], Limit::Whole(2, 100_000)),
    (&["training.corruption_rate"], Limit::Share),
    (&["training.regularisation"], Limit::NotNegative),
    (&["training.epochs"], Limit::Whole(1, MOST)),
    (&["training.train_samples", "training.test_samples"], Limit::Whole(0, MOST)),
    (&["training.evaluate_every", "training.checkpoint_every"], Limit::Whole(0, MOST)),
    (&["stop.error_below"], Limit::NotNegative),
    (&["stop.extra_rounds"], Limit::Whole(0, MOST)),
    (&["output.metrics_every"], Limit::Whole(0, MOST)),
    (&["output.log_frames_mb"], Limit::NotNegative),
];

/// The limit of the number at `path`; other keys have none.
pub(super) fn limit_of(path: &str) -> Option<Limit> {
    LIMITS.iter().find(|(keys, _)| keys.contains(&path)).map(|(_, limit)| *limit)
}

#[cfg(test)]
mod tests {
    use super::super::template::{ValueKind, keys};
    use super::super::{Flag, resolve};
    use super::*;

    #[test]
    fn every_number_has_a_limit_and_the_scenario_takes_what_it_allows() {
        for key in keys().iter().filter(|key| key.path != "version") {
            match key.kind {
                ValueKind::Integer => {
                    let Some(Limit::Whole(least, most)) = limit_of(&key.path) else { panic!("{}", key.path) };
                    for value in [least, most] {
                        // It panics where the type is too narrow for what the limit allows.
                        let flag = Flag { key, value: Value::from(value) };
                        assert!(resolve(None, &[flag]).is_ok(), "{} = {value}", key.path);
                    }
                }
                ValueKind::Float => assert!(limit_of(&key.path).is_some(), "{}", key.path),
                ValueKind::Boolean | ValueKind::Text => {
                    assert_eq!(limit_of(&key.path), None, "{}", key.path)
                }
            }
        }
    }

    #[test]
    fn not_a_number_and_infinity_are_refused() {
        for limit in [Limit::Positive, Limit::NotNegative, Limit::Share, Limit::Finite] {
            assert!(!limit.allows(&Value::from(f64::NAN)));
            assert!(!limit.allows(&Value::from(f64::INFINITY)));
        }
    }
}
