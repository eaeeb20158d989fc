//! A vertical axis in powers of ten.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

/// The axis: logarithms to base ten, with a line at every power or every few of them.
#[derive(Clone, Debug)]
pub struct Decades {
    lowest: f64,
    highest: f64,
}

impl Decades {
    /// Values so far below the highest, or below 1 where a swarm diverged, are noise of the arithmetic; showing them would
    /// flatten the rest.
    const MOST: f64 = 14.0;

    /// Space above and below the values.
    const ROOM: f64 = 0.15;

    /// The axis that shows all positive finite values.
    #[must_use]
    pub fn around(values: impl Iterator<Item = f64>) -> Self {
        let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
        for log in values.map(f64::log10).filter(|log| log.is_finite()) {
            lowest = lowest.min(log);
            highest = highest.max(log);
        }
        if lowest > highest {
            (lowest, highest) = (-3.0, 0.0);
        }
        let highest = highest + Self::ROOM;
        let lowest = (lowest - Self::ROOM).max(highest.min(Self::ROOM) - Self::MOST).min(highest - 1.0);
        Self { lowest, highest }
    }

    /// The logarithms at both ends.
    #[must_use]
    pub fn ends(&self) -> (f64, f64) {
        (self.lowest, self.highest)
    }
}

impl Ranged for Decades {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.lowest) / (self.highest - self.lowest);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        let (first, last) = (self.lowest.ceil() as i32, self.highest.floor() as i32);
        let every = ((last - first) / 7 + 1) as usize;
        (first..=last).rev().step_by(every).map(f64::from).collect()
    }

    fn range(&self) -> Range<f64> {
        self.lowest..self.highest
    }
}

/// `10⁻³` for −3.
#[must_use]
pub fn power_of_ten(log: f64) -> String {
    let digits = format!("{log:.0}");
    let superscript = digits.chars().map(|digit| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    });
    std::iter::once("10".to_owned()).chain(superscript.map(String::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_covers_the_values_and_no_more_than_it_must() {
        let (lowest, highest) = Decades::around([0.0, f64::NAN, 1e-3, 1.0].into_iter()).ends();
        assert!((-3.2..-3.0).contains(&lowest) && (0.0..0.2).contains(&highest));
        let (lowest, highest) = Decades::around([1e-40, 1.0].into_iter()).ends();
        assert_eq!(highest - lowest, Decades::MOST);
        let (lowest, highest) = Decades::around([1.0, 1e-3, 1e20].into_iter()).ends();
        assert!(lowest < -3.0 && highest > 20.0, "a divergence is shown from its beginning");
        assert!(Decades::around([0.0].into_iter()).ends().0.is_finite());
    }

    #[test]
    fn powers_read_as_in_print() {
        assert_eq!(power_of_ten(-12.0), "10⁻¹²");
        assert_eq!(power_of_ten(0.0), "10⁰");
    }
}
