//! The scale along one side of a panel: where a value stands, and which values are named.

/// A linear or logarithmic scale with a label.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    pub(crate) label: String,
    is_logarithmic: bool,
    /// Both ends: values, or their logarithms to base ten.
    low: f64,
    high: f64,
    /// The least distance of two ticks.
    least_step: f64,
    is_mirrored: bool,
}

impl Scale {
    /// Values so many decades below the highest, or below 1 where a swarm diverged, are noise that would flatten the rest.
    const MOST_DECADES: f64 = 14.0;
    /// Decades below which a scale names more than their powers.
    const FEW_DECADES: f64 = 2.0;
    /// Decades above and below the values.
    const ROOM: f64 = 0.15;

    /// A linear scale between two ends.
    pub fn linear(label: &str, low: f64, high: f64) -> Self {
        let high = if high - low > 1e-12 * low.abs() { high } else { low + 1.0 };
        Self {
            label: label.to_owned(),
            is_logarithmic: false,
            low,
            high,
            least_step: 0.0,
            is_mirrored: false,
        }
    }

    /// A linear scale that shows all finite values.
    pub fn around(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = ends(values).unwrap_or((0.0, 1.0));
        Self::linear(label, low, high)
    }

    /// A logarithmic scale that shows all positive finite values, with a tick at powers of ten.
    pub fn decades(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = ends(values.map(f64::log10)).unwrap_or((-3.0, 0.0));
        let high = high + Self::ROOM;
        let low = (low - Self::ROOM).max(high.min(Self::ROOM) - Self::MOST_DECADES).min(high - 1.0);
        Self { is_logarithmic: true, least_step: 1.0, ..Self::linear(label, low, high) }
    }

    /// The scale with ticks at whole numbers only, as rounds are.
    #[must_use]
    pub fn whole(self) -> Self {
        Self { least_step: 1.0, ..self }
    }

    /// The scale with ticks that show no sign, for bars on both sides of zero.
    #[must_use]
    pub fn mirrored(self) -> Self {
        Self { is_mirrored: true, ..self }
    }

    /// The position of `value`: 0 at the low end and 1 at the high one. Not finite where it has none.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let value = if self.is_logarithmic { value.log10() } else { value };
        (value - self.low) / (self.high - self.low)
    }

    /// Shares and names of round values, 6 or so.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        if self.is_logarithmic && self.high - self.low < Self::FEW_DECADES {
            return self.ticks_within_decades();
        }
        let rough = (self.high - self.low) / 6.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(power).max(self.least_step);
        let step = if self.least_step > 0.0 { step.round() } else { step };
        let (first, last) = ((self.low / step - 1e-9).ceil(), (self.high / step + 1e-9).floor());
        // At most 20, whatever the numbers are.
        let ticks = (0..20).map(|count| first + f64::from(count)).take_while(|tick| *tick <= last);
        ticks
            .map(|tick| {
                let value = tick * step;
                let name = if self.is_logarithmic { power_of_ten(value) } else { self.name(value) };
                ((value - self.low) / (self.high - self.low), name)
            })
            .collect()
    }

    /// Ticks at 1, 2 and 5 times each power of ten: a scale of few decades has too few powers to read a value from.
    fn ticks_within_decades(&self) -> Vec<(f64, String)> {
        let powers = (self.low.floor() as i32..=self.high.ceil() as i32).map(f64::from);
        let values = powers.flat_map(|power| [1, 2, 5].map(|digit| (digit, power)));
        let ticks = values.map(|(digit, power)| {
            let share = (power + f64::from(digit).log10() - self.low) / (self.high - self.low);
            let name = power_of_ten(power);
            (share, if digit == 1 { name } else { format!("{digit}·{name}") })
        });
        ticks.filter(|(share, _)| (0.0..=1.0).contains(share)).collect()
    }

    /// A value in few letters; all ticks of a scale have the same unit.
    pub(crate) fn name(&self, value: f64) -> String {
        let value = if self.is_mirrored { value.abs() } else { value };
        let (unit, letter) = match self.high.abs().max(self.low.abs()) {
            size if !(1e-3..1e15).contains(&size) => return format!("{value:.0e}"),
            size if size >= 1e9 => (1e9, "G"),
            size if size >= 1e6 => (1e6, "M"),
            size if size >= 1e4 => (1e3, "k"),
            _ => (1.0, ""),
        };
        let shown = (value / unit * 1e6).round() / 1e6;
        if shown == 0.0 { "0".to_owned() } else { format!("{shown}{letter}") }
    }
}

/// The least and the greatest finite value.
fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |ends, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })
}

/// `10⁻³` for −3.
fn power_of_ten(log: f64) -> String {
    let superscript = format!("{log:.0}");
    let superscript = superscript.chars().map(|digit| match digit {
        '-' => '⁻',
        digit => {
            digit.to_digit(10).and_then(|digit| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit as usize)).unwrap_or(digit)
        }
    });
    "10".chars().chain(superscript).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(scale: &Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn decades_cover_the_values_and_no_more_than_they_must() {
        let scale = Scale::decades("", [0.0, f64::NAN, 1e-3, 1.0].into_iter());
        assert!((-3.2..-3.0).contains(&scale.low) && (0.0..0.2).contains(&scale.high));
        assert_eq!(names(&scale), ["10⁻³", "10⁻²", "10⁻¹", "10⁰"]);
        let scale = Scale::decades("", [1e-40, 1.0].into_iter());
        assert_eq!(scale.high - scale.low, Scale::MOST_DECADES);
        assert_eq!(names(&scale).last().unwrap(), "10⁰");
        let scale = Scale::decades("", [1.0, 1e-3, 1e20].into_iter());
        assert!(scale.low < -3.0 && scale.high > 20.0, "a divergence is shown from its beginning");
        assert!(Scale::decades("", [0.0].into_iter()).low.is_finite());
        let scale = Scale::decades("", [0.3, 1.0].into_iter());
        assert_eq!(names(&scale), ["2·10⁻¹", "5·10⁻¹", "10⁰"]);
    }

    #[test]
    fn ticks_are_round_numbers_in_one_unit() {
        assert_eq!(names(&Scale::linear("", 0.0, 366.0)), ["0", "100", "200", "300"]);
        assert_eq!(names(&Scale::linear("", 0.0, 20_000.0)), ["0", "5k", "10k", "15k", "20k"]);
        assert_eq!(names(&Scale::linear("", 0.0, 2.0).whole()), ["0", "1", "2"]);
        assert_eq!(names(&Scale::linear("", 0.0, 1.0)), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(names(&Scale::linear("", -10.0, 10.0).mirrored()), ["10", "5", "0", "5", "10"]);
        for (low, high) in [(0.0, 1e300), (2.0, 2.0), (0.0, 1e-9), (1e9, 1e9 + 1.0)] {
            let scale = Scale::linear("", low, high);
            assert!((1..=20).contains(&names(&scale).len()), "{low} {high}");
            assert!(scale.ticks().iter().all(|(share, _)| (-0.01..=1.01).contains(share)), "{low} {high}");
        }
    }
}
