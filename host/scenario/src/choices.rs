//! Keys of a scenario that choose between a few values.

use serde::Deserialize;

/// Defines an enum whose variants are values in a scenario file.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Its value in a scenario file.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

choice! {
    /// Floating-point type of the agents.
    PrecisionKind {
        /// Single precision, as on a microcontroller.
        F32 = "f32",
        /// Double precision.
        F64 = "f64",
    }
}

choice! {
    /// The problem of the swarm.
    ProblemKind {
        /// Value estimation from private rewards.
        PolicyEvaluation = "policy-evaluation",
        /// Regulariser of a softmax regression.
        HyperTuning = "hyper-tuning",
        /// A weight for each training sample.
        HyperCleaning = "hyper-cleaning",
        /// A weight for each sensor.
        SensorTrust = "sensor-trust",
        /// The problem of a program of the user's own.
        Own = "own",
    }
}

choice! {
    /// How the swarm solves it.
    AlgorithmKind {
        /// FAB through the broadcast ledger.
        Ledger = "ledger",
        /// FAB as published.
        Fab = "fab",
        /// Subgradient-push on the penalty function.
        SubgradientPush = "subgradient-push",
        /// SGP on the penalty function.
        PushSgd = "push-sgd",
        /// Push-DIGing on the penalty function.
        PushDiging = "push-diging",
        /// Push-SAGA with full batches on the penalty function.
        PushSaga = "push-saga",
        /// SOBA's directions with push-pull.
        Soba = "soba",
        /// Push-pull around push-pull.
        DoubleLoopPushPull = "double-loop-push-pull",
        /// SGP around SGP.
        DoubleLoopPushSgd = "double-loop-push-sgd",
        /// Push-DIGing around Push-DIGing.
        DoubleLoopPushDiging = "double-loop-push-diging",
        /// The method of a program of the user's own.
        Own = "own",
    }
}

impl AlgorithmKind {
    /// The words of FAB, which come first.
    pub(super) const FAB_WORDS: &'static [&'static str] = Self::WORDS.split_at(2).0;

    /// Whether it is FAB, and not a method that FAB is compared with.
    pub const fn is_fab(self) -> bool {
        matches!(self, Self::Ledger | Self::Fab)
    }

    /// Whether it solves the lower level anew in every iteration.
    pub const fn is_double_loop(self) -> bool {
        matches!(self, Self::DoubleLoopPushPull | Self::DoubleLoopPushSgd | Self::DoubleLoopPushDiging)
    }
}

choice! {
    /// Whether agents step before or after they average decisions.
    OrderKind {
        /// They step, send the result and average what they hear.
        AdaptFirst = "adapt-first",
        /// They average what they hear, and step.
        CombineFirst = "combine-first",
    }
}

choice! {
    /// Which difference stands for the lower problem.
    PenaltyKind {
        /// Between the minimisers of g + f/λ and g − f/λ.
        Symmetric = "symmetric",
        /// Between the minimisers of g + f/λ and g.
        OneSided = "one-sided",
    }
}

choice! {
    /// When a round ends.
    ModeKind {
        /// For all agents together.
        LockStep = "lock-step",
        /// For each agent by its own clock.
        FreeRunning = "free-running",
    }
}

choice! {
    /// The clock that ends the rounds of boards.
    PaceKind {
        /// The host, which carries their frames.
        Air = "air",
        /// Their own clocks.
        Slots = "slots",
    }
}

choice! {
    /// The radio of boards that keep their own time.
    RadioFamily {
        /// IEEE 802.15.4 at 2.4 GHz.
        Ieee802154 = "802.15.4",
        /// ESP-NOW.
        EspNow = "esp-now",
        /// LoRa.
        Lora = "lora",
        /// No radio: the host carries frames.
        Carried = "carried",
    }
}

choice! {
    /// The fate of a run when a board restarts by itself or no longer answers.
    LostBoards {
        /// Its agent is down, without its memory, until the board is back.
        Rejoin = "rejoin",
        /// The run ends.
        Fail = "fail",
    }
}

choice! {
    /// How narrow frames are.
    WidthKind {
        /// f32 decisions and all of the running sum.
        Full = "full",
        /// 16 bits of each decision, with an exponent for 16 of them, and 16 bits of the running sum.
        Half = "half",
        /// 8 bits of each decision and 16 bits of every other word of the running sum.
        Byte = "byte",
    }
}

choice! {
    /// Mixing weights of plain FAB.
    WeightsKind {
        /// One over the degree.
        Uniform = "uniform",
        /// A large share for the agent itself.
        Lazy = "lazy",
    }
}

choice! {
    /// The links between agents.
    TopologyKind {
        /// Random graph, ring and reversed ring in turn.
        Paper = "paper",
        /// Directed ring.
        Ring = "ring",
        /// Directed ring, the other way round.
        ReversedRing = "reversed-ring",
        /// Random links, redrawn every round.
        ErdosRenyi = "erdos-renyi",
        /// All agents hear each other.
        Complete = "complete",
        /// Graphs of a file.
        Recorded = "recorded",
        /// Agents that fly, as far as their radios reach.
        Motion = "motion",
    }
}

choice! {
    /// How agents fly.
    FlightPattern {
        /// Each from one random place to the next.
        RandomWaypoint = "random-waypoint",
        /// Together, in a grid.
        Formation = "formation",
        /// In circles, half of them the other way round.
        Orbit = "orbit",
    }
}

choice! {
    /// The task of large agents, and the samples that they use.
    TrainingMethod {
        /// FAB: a weight for every training sample, judged on clean validation samples.
        Cleaning = "cleaning",
        /// FAB: the strength of regularisation, judged on clean validation samples.
        Tuning = "tuning",
        /// One level, on the noisy training samples.
        SingleLevelNoisy = "single-level-noisy",
        /// One level, on noisy training and clean validation samples together.
        SingleLevelAll = "single-level-all",
        /// One level, on the clean validation samples alone: what all others must beat.
        SingleLevelClean = "single-level-clean",
    }
}

choice! {
    /// How large agents of one level descend and talk.
    TrainingRule {
        /// AB/push-pull: pull weights for decisions, push weights for trackers.
        PushPull = "push-pull",
        /// Subgradient-push: push-sum weights, and a step that shrinks.
        SubgradientPush = "subgradient-push",
        /// SGP: push-sum weights and a constant step.
        PushSgd = "push-sgd",
        /// Push-DIGing: push-sum weights and trackers.
        PushDiging = "push-diging",
        /// Push-SAGA without its table of gradients: trackers, and descent after the push.
        PushSaga = "push-saga",
        /// Push-ASGD: as Push-DIGing, with gradients that build on the last ones; its β is `algorithm.momentum`.
        PushAsgd = "push-asgd",
    }
}

impl TrainingMethod {
    /// Whether there is an upper level, with decisions of its own.
    pub const fn is_bilevel(self) -> bool {
        matches!(self, Self::Cleaning | Self::Tuning)
    }
}
