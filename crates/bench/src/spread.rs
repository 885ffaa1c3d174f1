//! The median and the range of several rounds of one measurement.

use serde_json::{Value, json};

/// The median, the lowest and the highest of several rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) rounds: usize,
}

impl Spread {
    /// From one value per round; `NaN` when there is none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |i: usize| values.get(i).copied().unwrap_or(f64::NAN);
        let (last, middle) = (values.len().saturating_sub(1), values.len() / 2);
        let median =
            if values.len() % 2 == 1 { at(middle) } else { (at(middle.wrapping_sub(1)) + at(middle)) / 2.0 };
        Self { median, min: at(0), max: at(last), rounds: values.len() }
    }

    /// This median divided by the other one; `NaN` when that is zero.
    pub(crate) fn ratio(self, other: Self) -> f64 {
        if other.median == 0.0 { f64::NAN } else { self.median / other.median }
    }

    /// The form of the report; null for a single round.
    pub(crate) fn json(self) -> Value {
        match self.rounds {
            0 | 1 => Value::Null,
            rounds => json!({ "min": self.min, "max": self.max, "rounds": rounds }),
        }
    }
}

impl From<f64> for Spread {
    fn from(value: f64) -> Self {
        Self::of([value])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_odd_number_is_the_middle_one() {
        let spread = Spread::of([9.0, 1.0, 4.0]);
        assert_eq!(spread, Spread { median: 4.0, min: 1.0, max: 9.0, rounds: 3 });
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        assert_eq!(Spread::of([8.0, 2.0, 4.0, 6.0]).median.to_bits(), 5.0_f64.to_bits());
    }

    #[test]
    fn one_round_has_no_spread() {
        assert_eq!(Spread::from(3.0).json(), Value::Null);
        assert_eq!(Spread::of([3.0, 5.0]).json(), json!({ "min": 3.0, "max": 5.0, "rounds": 2 }));
    }

    #[test]
    fn a_ratio_is_of_the_medians() {
        let half = Spread::of([1.0, 2.0, 30.0]).ratio(Spread::of([3.0, 4.0, 5.0]));
        assert_eq!(half.to_bits(), 0.5_f64.to_bits());
        assert!(Spread::from(1.0).ratio(Spread::from(0.0)).is_nan());
        assert!(Spread::of([]).ratio(Spread::from(1.0)).is_nan());
    }
}
