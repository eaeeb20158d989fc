//! Problems whose data a sensor replaces while they run.

use super::{AnyProblem, Problem, SensorTrust};
use crate::provisioning::{Error, PageData, PageProblem, WriteError};

/// Most readings of an agent on a board with a sensor.
pub const FRESH_READINGS: usize = 64;

/// Replaces the value whose turn it is in `round`: a sensor replaces all of them one after the other.
pub fn refresh<S>(values: &mut [S], round: u32, value: S) {
    if let Some(place) = (round as usize).checked_rem(values.len()).and_then(|turn| values.get_mut(turn)) {
        *place = value;
    }
}

impl<'a, S> AnyProblem<'a, S> {
    /// The values that a sensor replaces: those of sensor trust.
    pub const fn readings(&self) -> &'a [S] {
        match self {
            Self::SensorTrust(problem) => problem.readings.values,
            _ => &[],
        }
    }

    /// This problem with other values of its readings; `values` may be longer.
    #[must_use]
    pub fn with_readings(mut self, values: &'a [S]) -> Self {
        if let Self::SensorTrust(SensorTrust { readings, .. }) = &mut self {
            readings.values = values.get(..readings.values.len()).unwrap_or(readings.values);
        }
        self
    }
}

/// The problem of a board with a sensor: the page's, with fresh readings in the place of those in flash.
#[derive(Clone, Copy, Debug)]
pub struct SensedProblem<'a> {
    given: AnyProblem<'a, f32>,
    values: [f32; FRESH_READINGS],
}

impl<'a> SensedProblem<'a> {
    fn new(given: AnyProblem<'a, f32>) -> Result<Self, Error> {
        let mut values = [0.0; FRESH_READINGS];
        let place = values.get_mut(..given.readings().len()).ok_or(Error::TooLarge)?;
        place.copy_from_slice(given.readings());
        Ok(Self { given, values })
    }
}

macro_rules! present {
    ($self:ident, $problem:ident => $call:expr) => {{
        let $problem = &$self.given.with_readings(&$self.values);
        $call
    }};
}

impl Problem<f32> for SensedProblem<'_> {
    crate::delegate_problem!(present, f32);

    fn take_reading(&mut self, round: u32, value: f32) {
        let count = self.given.readings().len().min(FRESH_READINGS);
        refresh(&mut self.values[..count], round, value);
    }
}

impl<'a> PageProblem<'a> for SensedProblem<'a> {
    fn page_data(&self) -> Result<PageData<'a>, WriteError> {
        self.given.page_data()
    }

    fn from_page(data: PageData<'a>) -> Result<Self, Error> {
        Self::new(AnyProblem::from_page(data)?)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::problem::{NoiseKey, Readings};
    use std::vec;

    #[test]
    fn a_fresh_reading_replaces_the_one_whose_turn_it_is() {
        let readings = Readings { basis: &[1.0, 0.5, 0.2], values: &[1.0, 2.0, 3.0] };
        let trust = |values| SensorTrust {
            readings: Readings { values, ..readings },
            sensor_of: &[0, 0, 1],
            sensors: 2,
            calibrated: Readings { basis: &[1.0], values: &[1.5] },
            regularisation: 0.05,
        };
        let given = AnyProblem::SensorTrust(trust(readings.values));
        let mut sensed = SensedProblem::new(given).unwrap();
        assert_eq!(sensed.check(), Ok(()));
        let gradient = |problem: &dyn Problem<f32>| {
            let (mut dx, mut dy) = (vec![0.0; 2], vec![0.0; 1]);
            let at = NoiseKey { agent: 0, round: 0 };
            problem.lower_gradient(at, &[0.1, 0.2], &[0.7], &mut dx, &mut dy, &mut []);
            (dx, dy)
        };
        assert_eq!(gradient(&sensed), gradient(&given));
        sensed.take_reading(7, -4.0);
        assert_eq!(gradient(&sensed), gradient(&trust(&[1.0, -4.0, 3.0])));
        assert_ne!(gradient(&sensed), gradient(&given));
        refresh(&mut [0.0; 0], 7, 1.0);
    }
}
