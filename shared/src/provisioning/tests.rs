//! Pages survive their way, and whatever is wrong with one is named.

extern crate std;
use super::*;
use crate::problem::testing::{examples, random};
use crate::problem::{Classes, HyperTuning, PolicyEvaluation, Problem, Samples};
use crate::slots::SlotConfig;
use bytemuck::cast_slice;
use proptest::prelude::*;
use std::{vec, vec::Vec};

const FEATURES: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

fn page<'a, P>(problem: P) -> Page<'a, P> {
    Page {
        board: "testing",
        key: Some([7; KEY_BYTES]),
        key_number: 1,
        chip: None,
        boot_floor: 1,
        agent: agent::Config::founder(3, 10),
        pace: Pace::Air,
        rounds: 1000,
        save_every: 1,
        start: &[0.5, -0.0],
        problem,
    }
}

const POLICY_EVALUATION: PolicyEvaluation<'static, f32> =
    PolicyEvaluation::new(&FEATURES, &FEATURES, &[0.5, 0.25, -1.0]);

/// A page's bytes at an address that words can be read from.
fn aligned(bytes: &[u8]) -> Vec<u32> {
    let mut words = vec![u32::MAX; bytes.len().div_ceil(4)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

fn written<'a, P: PageProblem<'a>>(page: &Page<'a, P>) -> Vec<u8> {
    let mut out = vec![0; 1024];
    let length = page.write(&mut out).unwrap();
    out.truncate(length);
    out
}

fn read_error(bytes: &[u8]) -> Option<Error> {
    Page::read(cast_slice(&aligned(bytes)), "testing").err()
}

#[test]
fn every_problem_round_trips_through_a_page() {
    let numbers = random(1);
    for problem in examples(&numbers) {
        let page = page(problem);
        let flash = aligned(&written(&page));
        let read = Page::read(cast_slice(&flash), "testing").unwrap();
        assert_eq!(written(&read), written(&page));
    }
}

#[test]
fn slots_round_trip_and_must_be_sound() {
    let superframe = Superframe::plan(&SlotConfig { shared_us: 9000, ..SlotConfig::default() }).unwrap();
    let in_slots = |superframe| Page {
        pace: Pace::Slots { superframe, slot_bytes: 122, shared_bytes: 410 },
        ..page(AnyProblem::PolicyEvaluation(POLICY_EVALUATION))
    };
    let flash = aligned(&written(&in_slots(superframe)));
    assert_eq!(Page::read(cast_slice(&flash), "testing").unwrap().pace, in_slots(superframe).pace);
    for unsound in [
        Superframe { turn: 0, ..superframe },
        Superframe { guard_us: superframe.slot_us, ..superframe },
        Superframe { agents: 3, ..superframe },
    ] {
        assert_eq!(read_error(&written(&in_slots(unsound))), Some(Error::Malformed), "{unsound:?}");
    }
    let retired = Page { pace: Pace::Retired, ..page(AnyProblem::PolicyEvaluation(POLICY_EVALUATION)) };
    assert_eq!(read_error(&written(&retired)), Some(Error::Malformed));
}

#[test]
fn each_invalid_page_has_its_error() {
    let good = written(&page(AnyProblem::PolicyEvaluation(POLICY_EVALUATION)));
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    assert_eq!(read_error(&good), None);
    assert_eq!(read_error(&[]), Some(Error::Missing));
    assert_eq!(read_error(&[0xFF; 64]), Some(Error::Missing));
    assert_eq!(read_error(&with(4, 8)), Some(Error::Version { page: 8, firmware: VERSION }));
    assert_eq!(read_error(&good[..10]), Some(Error::Truncated));
    assert_eq!(read_error(&good[..good.len() - 8]), Some(Error::Truncated));
    assert_eq!(read_error(&with(30, good[30] ^ 1)), Some(Error::Checksum));
    let flash = aligned(&good);
    assert_eq!(Page::read(cast_slice(&flash), "other").err(), Some(Error::OtherBoard));
}

/// A user's problem.
#[derive(Clone, Copy)]
struct OwnProblem<'a>(PolicyEvaluation<'a, f32>);

macro_rules! inner {
    ($self:ident, $problem:ident => $call:expr) => {{
        let $problem = &$self.0;
        $call
    }};
}

impl Problem<f32> for OwnProblem<'_> {
    crate::delegate_problem!(inner, f32);
}

impl<'a> PageProblem<'a> for OwnProblem<'a> {
    fn page_data(&self) -> Result<PageData<'a>, WriteError> {
        Ok(PageData::own("own", self.0.rewards, &[7]))
    }
    fn from_page(data: PageData<'a>) -> Result<Self, Error> {
        let (rewards, bytes) = data.take_own("own")?;
        assert_eq!(bytes, [7]);
        Ok(Self(PolicyEvaluation { features: rewards, successors: rewards, rewards, ..POLICY_EVALUATION }))
    }
}

#[test]
fn a_problem_of_ones_own_round_trips_and_is_no_other() {
    let of_own = |rewards| page(OwnProblem(PolicyEvaluation { rewards, ..POLICY_EVALUATION }));
    let own = of_own(&[1.5, -2.0]);
    let bytes = aligned(&written(&own));
    let read = Page::<OwnProblem<'_>>::read_as(cast_slice(&bytes), "testing").unwrap();
    assert_eq!((read.problem.0.rewards, read.start, read.rounds), (&[1.5, -2.0][..], own.start, own.rounds));

    assert_eq!(Page::read(cast_slice(&bytes), "testing").unwrap_err(), Error::OtherProblem);
    let read_own = |bytes: &[u8]| {
        let flash = aligned(bytes);
        Page::<OwnProblem<'_>>::read_as(cast_slice(&flash), "testing").map(|_| ())
    };
    let ours = page(AnyProblem::PolicyEvaluation(POLICY_EVALUATION));
    assert_eq!(read_own(&written(&ours)), Err(Error::OtherProblem));
    assert_eq!(read_own(&written(&of_own(&[]))), Err(Error::Malformed));
}

#[test]
fn a_problem_that_contradicts_itself_is_refused() {
    let samples = Samples { features: &FEATURES, labels: &[1, 0, 9] };
    let problem = HyperTuning { train: samples, validation: samples, classes: Classes(3) };
    let bytes = written(&page(AnyProblem::HyperTuning(problem)));
    assert_eq!(read_error(&bytes), Some(Error::Malformed));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = read_error(&bytes);
    }
}

/// Regression: 70,000 states were written as 4,464.
#[test]
fn a_problem_with_more_than_a_page_can_count_is_refused() {
    let many = vec![0.5; 70_000];
    let problem = |rewards| {
        let of_rewards =
            PolicyEvaluation { features: rewards, successors: rewards, rewards, ..POLICY_EVALUATION };
        AnyProblem::PolicyEvaluation(of_rewards)
    };
    let mut out = vec![0; 1 << 20];
    let refused = page(problem(&many)).write(&mut out);
    assert_eq!(refused, Err(WriteError::Count { what: "states", count: 70_000, most: 65_535 }));
    assert!(page(problem(&many[..65_535])).write(&mut out).is_ok());
    let train = Samples { features: &[1.0], labels: &[0] };
    let classes = HyperTuning { train, validation: train, classes: Classes(256) };
    let refused = page(AnyProblem::HyperTuning(classes)).write(&mut out);
    assert_eq!(refused, Err(WriteError::Count { what: "classes", count: 256, most: 255 }));
}
