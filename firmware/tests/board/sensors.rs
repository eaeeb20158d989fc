//! Fresh readings in, decisions out.

use crate::rig::*;
use core::{
    cell::{Cell, RefCell},
    future::pending,
};
use embassy_futures::{select::select, yield_now};
use embassy_time::{Duration, Timer};
use fabswarm_firmware::{
    run_sensed,
    sensor::{Outlet, Sensor, Unconnected},
};
use fabswarm_shared::{
    packet::{Packet, SensorState, Telemetry},
    problem::{AnyProblem, Readings, SensorTrust},
    provisioning::Pace,
};

/// Takes this long for a reading, and has none in round 1.
struct FakeSensor(Duration);

impl Sensor for FakeSensor {
    async fn read(&mut self, round: u32) -> Option<f32> {
        Timer::after(self.0).await;
        if round == 1 {
            pending().await
        }
        Some(10.0 * (round + 1) as f32)
    }

    fn refused(&self) -> u32 {
        5
    }
}

struct Recorder<'a>(&'a RefCell<Vec<u8>>);

impl Outlet for Recorder<'_> {
    fn write(&mut self, message: &[u8]) {
        self.0.borrow_mut().extend_from_slice(message);
    }
}

/// The page of an agent that is alone with its sensors.
fn sensor_page(pace: Pace) -> Vec<u32> {
    let readings = Readings { basis: &[1.0, 0.5], values: &[2.0, 1.0] };
    let trust =
        SensorTrust { readings, sensor_of: &[0, 1], sensors: 2, calibrated: readings, regularisation: 0.1 };
    page_with(5, pace, |page| {
        page.agent = fabswarm_shared::agent::Config::founder(0, 1);
        (page.start, page.problem) = (&[0.0; 4], AnyProblem::SensorTrust(trust));
    })
}

/// Measures while others have several turns.
struct SlowSensor<'a>(&'a Cell<u32>);

impl Sensor for SlowSensor<'_> {
    async fn read(&mut self, _: u32) -> Option<f32> {
        let turns = self.0;
        let until = turns.get() + 5;
        while turns.get() < until {
            yield_now().await;
        }
        Some(1.0)
    }
}

/// Regression: a board that waited for its sensor ran nothing else.
#[test]
fn a_sensor_that_takes_its_time_stops_nobody() {
    for (pace, words) in [(Pace::Air, vec![Packet::Start { air_round: 0 }, over(0)]), (slots(1), vec![])] {
        let turns = Cell::new(0);
        let others = async {
            loop {
                turns.set(turns.get() + 1);
                yield_now().await;
            }
        };
        let reading = Some(1.0_f32.to_bits());
        // On a busy machine some rounds of the board's clock are over before anybody has a turn.
        let is_read = |told: &[Telemetry]| {
            told.iter().any(|told| told.sensor.is_some_and(|sensor| sensor.reading == reading))
        };
        let said = said_by(
            &mut blank_flash(),
            &sensor_page(pace),
            words,
            async |heard| _ = select(others, until_told(heard, is_read)).await,
            async |parts| run_sensed(parts, SlowSensor(&turns), Unconnected).await,
        );
        assert!(is_read(&telemetry(&said)), "{pace:?}");
    }
}

#[test]
fn a_board_takes_fresh_readings_and_passes_on_its_decisions() {
    let page = sensor_page(Pace::Air);
    let words = || [Packet::Start { air_round: 0 }, over(0), over(1), over(2)];
    let mut flash = blank_flash();
    let without = telemetry(&said_with(&mut flash.clone(), &page, words()));

    let passed_on = RefCell::new(Vec::new());
    let said = said_by(
        &mut flash,
        &page,
        words(),
        async |heard| until_told(heard, |told| told.len() == 4).await,
        async |parts| run_sensed(parts, FakeSensor(Duration::from_millis(5)), Recorder(&passed_on)).await,
    );
    let told = telemetry(&said);
    let state = |reading: Option<f32>, silent| {
        Some(SensorState { reading: reading.map(f32::to_bits), silent, refused: 5 })
    };
    let states: Vec<_> = told.iter().map(|told| told.sensor).collect();
    assert_eq!(states, [state(Some(10.0), 0), state(None, 1), state(Some(30.0), 1), state(Some(40.0), 1)]);
    assert!(without.iter().all(|told| told.sensor.is_none()));
    // The first three rounds of both: a reading changes the state after the round that takes it.
    let is_equal = |round: usize| told[round].digest == without[round].digest;
    assert_eq!([0, 1, 2, 3].map(is_equal), [true, false, false, false]);

    let bytes = passed_on.into_inner();
    let (mut rest, mut named) = (&bytes[..], Vec::new());
    while let [0xFD, length, _, _, _, 1, 191, 251, 0, 0, payload @ ..] = rest {
        let (payload, behind) = payload.split_at(usize::from(*length));
        let value = f32::from_le_bytes(payload[4..8].try_into().unwrap());
        named.push((String::from_utf8_lossy(&payload[8..]), value));
        rest = &behind[2..];
    }
    assert!(rest.is_empty() && named.len() == 3 * 3, "{named:?}");
    let x: Vec<f32> = match Packet::decode(said.last().unwrap()) {
        Ok(Packet::Telemetry(_, x)) => x.iter().collect(),
        other => panic!("{other:?}"),
    };
    assert_eq!(named[6..8], [("x0".into(), x[0]), ("x1".into(), x[1])]);
    assert_eq!(named[8].0, "y0");
}
