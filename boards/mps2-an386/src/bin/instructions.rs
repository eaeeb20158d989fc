//! Counts the instructions of the parts of a round, ours and plain C's, and ends.
//!
//! Under `-icount shift=10` an instruction takes 1024 ns of the emulator's time, and the FPGA's counter ticks every 40 ns.
#![no_std]
#![no_main]

#[path = "../registers.rs"]
#[allow(dead_code, reason = "the firmware uses more of it")]
mod registers;

use core::{hint::black_box, panic::PanicInfo};
use cortex_m_semihosting::{debug, hprintln};
use fabswarm_shared::{
    agent::{Agent, Config, Origin, PeerSlot, Received},
    fab::{Steps, gather},
    ledger::{self, ShareWeights, accumulate, descend},
    linear::scaled,
    problem::{AnyProblem, NoiseKey, Penalty, PenaltyForm, PolicyEvaluation, Problem, Shape},
    wire::seal::{Key, Opener, Sealer, VolatileBoots},
};
use registers::Registers;

const FEATURES: usize = 5;
const STATES: usize = 20;
const WORDS: usize = FEATURES + 2 * STATES;
/// Others heard in a round.
const HEARD: usize = 2;

type CountedAgent<'a> = Agent<AnyProblem<'a, f32>, heapless::Vec<PeerSlot<WORDS>, HEARD>, WORDS>;

const STEPS: Steps<f32> = Steps { x: 1.8, y: 0.18, z: 0.18, momentum: 0.7 };
const PENALTY: Penalty<f32> = Penalty { lambda: 60.0, normalise: true, form: PenaltyForm::OneSided };
const AUDIENCE: u32 = 9;
const SELF_WEIGHT: f32 = 0.95;

// SAFETY: address of application note AN386.
const FPGA_IO: Registers = unsafe { Registers::new(0x4002_8000) };
const COUNTER: usize = 0x18;
const PRESCALE: usize = 0x1C;

#[repr(C)]
struct CPolicyEvaluation {
    features: *const f32,
    successors: *const f32,
    rewards: *const f32,
    upper_weight: f32,
    lower_weight: f32,
    regularisation: f32,
    states: usize,
    columns: usize,
}

unsafe extern "C" {
    fn c_pull(
        x: usize,
        y: usize,
        beta: f32,
        eta: *const f32,
        weight: f32,
        own: *const f32,
        heard: *const *const f32,
        count: usize,
        tracker: *const i32,
        accumulator: *mut f32,
        next: *mut f32,
    );
    fn c_gradient(
        problem: *const CPolicyEvaluation,
        lambda: f32,
        v: *const f32,
        d: *mut f32,
        scratch: *mut f32,
    );
    fn c_push(
        words: usize,
        weight: i64,
        audience: i32,
        t: *mut i32,
        carry: *mut i64,
        sigma: *mut i32,
        sums: *const *const i32,
        rho: *const *mut i32,
        count: usize,
        newest: *const f32,
        d: *mut i32,
    ) -> i32;
}

/// Nothing interrupts the count.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [usize; 32] = [0; 32];

/// Instructions that `work` takes.
#[inline(never)]
fn count(work: &mut dyn FnMut()) -> u32 {
    let begun = FPGA_IO.read(COUNTER);
    work();
    let ticks = FPGA_IO.read(COUNTER).wrapping_sub(begun);
    (u64::from(ticks) * 40 / 1024) as u32
}

/// Two numbers that are never the same.
fn some(index: usize) -> f32 {
    ((index * 37 + 11) % 101) as f32 / 101.0 - 0.45
}

/// The end of the chip's RAM. Agents lie on the stack here, which is longer than the stack of the firmware.
const STACK_TOP: usize = 0x2004_0000;

#[cortex_m_rt::entry]
fn main() -> ! {
    // SAFETY: the memory below it is far from all statics, and nothing on the present stack is used again.
    unsafe { cortex_m::asm::bootstrap(STACK_TOP as *const u32, count_all as *const u32) }
}

/// One function, though a long one: what is counted depends on how the code around it is compiled, and counts are compared over
/// versions.
extern "C" fn count_all() -> ! {
    FPGA_IO.write(PRESCALE, 0);
    let nothing = count(&mut || {});
    let measure = |work: &mut dyn FnMut()| count(work) - nothing;
    let features: [f32; FEATURES * STATES] = black_box(core::array::from_fn(some));
    let successors: [f32; FEATURES * STATES] = black_box(core::array::from_fn(|index| some(index + 300)));
    let rewards: [f32; STATES] = black_box(core::array::from_fn(|index| some(index + 500)));
    let own: [f32; WORDS] = black_box(core::array::from_fn(|index| some(index + 700)));
    let others: [[f32; WORDS]; HEARD] =
        core::array::from_fn(|j| core::array::from_fn(|index| some(index + 90 * j)));
    let sums: [[i32; WORDS]; HEARD] =
        core::array::from_fn(|j| core::array::from_fn(|index| (index * 7919 + j) as i32));
    let problem =
        PolicyEvaluation { regularisation: 0.1, ..PolicyEvaluation::new(&features, &successors, &rewards) };
    let shape: Shape = Problem::<f32>::shape(&problem);
    let any = black_box(AnyProblem::PolicyEvaluation(problem));
    let mut trackers: [i32; WORDS] = core::array::from_fn(|index| index as i32 * 1000 - 20_000);
    let weight = 1.0 / (HEARD as f32 + 1.0);

    let (mut heard, mut next, mut accumulator) = ([0.0; WORDS], [0.0; WORDS], [0.0; WORDS]);
    let pull = measure(&mut || {
        heard.copy_from_slice(&own);
        gather::<1, _>(&mut heard, others.iter().map(|v| &v[..]));
        scaled(weight, &heard, &mut next);
        accumulate(&shape, STEPS.momentum, &next, &trackers, &mut accumulator);
        descend(&shape, &STEPS, &accumulator, &mut next);
    });
    let (mut c_next, mut c_accumulator) = ([0.0; WORDS], [0.0; WORDS]);
    let eta = [STEPS.x, STEPS.y, STEPS.z];
    let heard = others.each_ref().map(|v| v.as_ptr());
    // SAFETY: the lengths passed are those of the arrays, here and below.
    let pull_in_c = measure(&mut || unsafe {
        c_pull(
            FEATURES,
            STATES,
            STEPS.momentum,
            eta.as_ptr(),
            weight,
            own.as_ptr(),
            heard.as_ptr(),
            HEARD,
            trackers.as_ptr(),
            c_accumulator.as_mut_ptr(),
            c_next.as_mut_ptr(),
        );
    });
    compare("pull", &next, &c_next);

    let (mut d, mut scratch) = ([0.0; WORDS], [0.0; WORDS]);
    let gradient = measure(&mut || {
        any.penalty_gradient(&PENALTY, NoiseKey { agent: 0, round: 1 }, &own, &mut d, &mut scratch);
    });
    let (mut c_d, mut c_scratch) = ([0.0; WORDS], [0.0; WORDS]);
    let c_problem = CPolicyEvaluation {
        features: features.as_ptr(),
        successors: successors.as_ptr(),
        rewards: rewards.as_ptr(),
        upper_weight: 1.0,
        lower_weight: 1.0,
        regularisation: 0.1,
        states: STATES,
        columns: FEATURES,
    };
    let gradient_in_c = measure(&mut || unsafe {
        c_gradient(
            &raw const c_problem,
            PENALTY.lambda,
            own.as_ptr(),
            c_d.as_mut_ptr(),
            c_scratch.as_mut_ptr(),
        );
    });
    compare("gradient", &d, &c_d);

    let share_weights = ShareWeights::new(SELF_WEIGHT, AUDIENCE);
    let mut c_trackers = trackers;
    let (mut carry, mut sigma, mut rho, mut tracked) =
        ([0i64; WORDS], [0; WORDS], [[0; WORDS]; HEARD], [0; WORDS]);
    let push = measure(&mut || {
        ledger::give(&share_weights, 0, &mut trackers, &mut carry, &mut sigma);
        for (sums, rho) in sums.iter().zip(&mut rho) {
            ledger::take(sums, rho, &mut trackers);
        }
        let _ = black_box(ledger::track(&d, &mut tracked, &mut trackers));
    });
    let (mut carry, mut sigma, mut rho, mut tracked) =
        ([0i64; WORDS], [0; WORDS], [[0; WORDS]; HEARD], [0; WORDS]);
    let c_sums = sums.each_ref().map(|sums| sums.as_ptr());
    let c_rho = rho.each_mut().map(|rho| rho.as_mut_ptr());
    let fixed =
        libm::round((1.0 - f64::from(SELF_WEIGHT)) / f64::from(AUDIENCE) * f64::from(1u32 << 31)) as i64;
    let push_in_c = measure(&mut || unsafe {
        c_push(
            WORDS,
            fixed,
            AUDIENCE as i32,
            c_trackers.as_mut_ptr(),
            carry.as_mut_ptr(),
            sigma.as_mut_ptr(),
            c_sums.as_ptr(),
            c_rho.as_ptr(),
            HEARD,
            d.as_ptr(),
            tracked.as_mut_ptr(),
        );
    });
    if trackers != c_trackers {
        fail("push");
    }

    let config = |id| Config {
        steps: STEPS,
        penalty: Penalty { form: PenaltyForm::Symmetric, ..PENALTY },
        self_weight: SELF_WEIGHT,
        late_rounds: 8,
        ..Config::founder(id, 3)
    };
    let key = Key::new(&[7; 32]);
    let mut frame = [0; 400];
    let mut place = None;
    let Ok(sender) = CountedAgent::new_in(&mut place, config(0), any, &own, heapless::Vec::new()) else {
        fail("an agent")
    };
    let Ok(Some(length)) = sender.poll_frame(&mut frame) else { fail("a frame") };
    let Ok(mut sealer) = Sealer::start(0, 1, &mut VolatileBoots::new()) else { fail("a sealer") };
    let (mut sealed, mut opened) = ([0; 440], [0; 440]);
    let mut sealed_length = 0;
    let seal = measure(&mut || {
        sealed_length = sealer.seal(&key, &frame[..length], &mut sealed).unwrap_or_default();
    });
    let mut opener = Opener::<16>::new();
    let open = measure(&mut || {
        black_box(opener.open(&key, &sealed[..sealed_length], &mut opened).is_ok());
    });
    let mut place = None;
    let Ok(listener) = CountedAgent::new_in(&mut place, config(1), any, &own, heapless::Vec::new()) else {
        fail("an agent")
    };
    let mut received = None;
    let parse = measure(&mut || received = Some(listener.receive(Origin::Clear, &frame[..length])));
    if received != Some(Received::Taken) {
        fail("a frame");
    }
    let round = measure(&mut || {
        black_box(listener.end_round());
    });
    hprintln!("pull {} {}", pull, pull_in_c);
    hprintln!("gradient {} {}", gradient, gradient_in_c);
    hprintln!("push {} {}", push, push_in_c);
    hprintln!("seal {}", seal);
    hprintln!("open {}", open);
    hprintln!("parse {}", parse);
    hprintln!("end-of-round {}", round);
    debug::exit(debug::EXIT_SUCCESS);
    loop {}
}

/// Both must have come to the same, to rounding.
fn compare(part: &str, ours: &[f32], theirs: &[f32]) {
    if ours.iter().zip(theirs).any(|(ours, theirs)| (ours - theirs).abs() > 1e-5) {
        fail(part);
    }
}

fn fail(part: &str) -> ! {
    hprintln!("{} failed", part);
    loop {
        debug::exit(debug::EXIT_FAILURE);
    }
}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    fail("the firmware")
}
