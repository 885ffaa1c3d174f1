//! One measured figure (median and range of its rounds), written as a line to the terminal and as JSON to the report.

use std::fs::{OpenOptions, create_dir_all};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The folder of the report, and of the yardsticks that are installed.
pub(crate) const FOLDER: &str = "target/bench";

/// The median, the lowest and the highest of several rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) rounds: usize,
}

impl Spread {
    /// The spread of one value a round; `NaN` without a value.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |i: usize| values.get(i).copied().unwrap_or(f64::NAN);
        let (last, middle) = (values.len().saturating_sub(1), values.len() / 2);
        let median =
            if values.len() % 2 == 1 { at(middle) } else { (at(middle.wrapping_sub(1)) + at(middle)) / 2.0 };
        Self { median, min: at(0), max: at(last), rounds: values.len() }
    }

    /// This median divided by the other median; `NaN` when that is zero.
    pub(crate) fn ratio(self, other: Self) -> f64 {
        if other.median == 0.0 { f64::NAN } else { self.median / other.median }
    }

    /// The range and the rounds as JSON for the report; null for fewer than two rounds.
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

/// A measured value.
pub(crate) struct Figure<'a> {
    pub(crate) scenario: &'a str,
    pub(crate) name: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) value: Spread,
    /// The yardstick of the same run: its name, and its value in the same unit.
    pub(crate) yardstick: Option<(&'a str, Spread)>,
    /// The circumstances, and what else was seen.
    pub(crate) with: Value,
}

impl Figure<'_> {
    /// Prints the figure and appends it to the report.
    pub(crate) fn report(&self) {
        let line = self.json();
        show(&line);
        append(&line);
    }

    fn json(&self) -> Value {
        let mut line = json!({
            "scenario": self.scenario,
            "figure": self.name,
            "value": number(self.value.median),
            "unit": self.unit,
            "spread": self.value.json(),
            "with": self.with,
        });
        if let Some((name, value)) = self.yardstick {
            line["yardstick"] = json!({
                "name": name,
                "value": number(value.median),
                "unit": self.unit,
                "spread": value.json(),
            });
            line["ratio"] = number(self.value.ratio(value));
        }
        line
    }
}

/// Reports a figure without a yardstick.
pub(crate) fn report(scenario: &str, name: &str, value: impl Into<Spread>, unit: &str, with: &Value) {
    Figure { scenario, name, unit, value: value.into(), yardstick: None, with: with.clone() }.report();
}

/// Pairs the value of a yardstick with its name. If it could not be measured, reports why and returns `None`.
pub(crate) fn yardstick<'a, T>(
    scenario: &str,
    name: &'a str,
    measured: Result<T, String>,
) -> Option<(&'a str, T)> {
    match measured {
        Ok(value) => Some((name, value)),
        Err(reason) => {
            skipped(scenario, name, &reason);
            None
        }
    }
}

/// Prints and reports that a part was left out, and why.
#[expect(clippy::print_stdout, reason = "the figures are this program's output")]
pub(crate) fn skipped(scenario: &str, what: &str, reason: &str) {
    println!("{scenario}: {what} is left out: {reason}");
    append(&json!({ "scenario": scenario, "skipped": what, "reason": reason }));
}

/// The path of the report, to which every run appends.
pub(crate) fn report_file() -> PathBuf {
    Path::new(FOLDER).join("report.jsonl")
}

/// The mark of this run's lines in the report, because another run may write at the same time.
pub(crate) fn this_run() -> Value {
    std::process::id().into()
}

/// Appends a line to the report, marked with this run.
pub(crate) fn append(line: &Value) {
    let mut line = line.clone();
    line["run"] = this_run();
    create_dir_all(FOLDER).expect("target/bench can be made");
    let file = OpenOptions::new().create(true).append(true).open(report_file());
    writeln!(file.expect("the report can be opened"), "{line}").expect("the report can be written");
}

#[expect(clippy::print_stdout, reason = "the figures are this program's output")]
fn show(line: &Value) {
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let value = line["value"].as_f64().unwrap_or(f64::NAN);
    let mut shown = format!("{:17} {:24} {value:>12.2} {:9}", text("scenario"), text("figure"), text("unit"));
    if let (Some(ratio), Some(name)) = (line["ratio"].as_f64(), line["yardstick"]["name"].as_str()) {
        shown.push_str(&format!(" {ratio:.3} of {name}"));
    }
    println!("{shown} {}", line["with"]);
}

/// Rounds to three decimal places, which is more than any figure is good for; null for `NaN`.
fn number(value: f64) -> Value {
    json!((value * 1000.0).round() / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_carries_its_yardstick_and_the_ratio() {
        let figure = Figure {
            scenario: "drain",
            name: "delivered",
            unit: "jobs/s",
            value: Spread::of([10.0, 30.0, 20.0]),
            yardstick: Some(("bare reqwest", 40.0.into())),
            with: json!({ "jobs": 3 }),
        };
        let wanted = json!({
            "scenario": "drain", "figure": "delivered", "value": 20.0, "unit": "jobs/s",
            "spread": { "min": 10.0, "max": 30.0, "rounds": 3 },
            "yardstick": { "name": "bare reqwest", "value": 40.0, "unit": "jobs/s", "spread": null },
            "ratio": 0.5,
            "with": { "jobs": 3 },
        });
        assert_eq!(figure.json(), wanted);
    }

    #[test]
    fn without_a_yardstick_there_is_no_ratio() {
        let figure = Figure {
            scenario: "idle",
            name: "calls",
            unit: "calls/s",
            value: f64::NAN.into(),
            yardstick: None,
            with: Value::Null,
        };
        let line = figure.json();
        assert_eq!((line.get("ratio"), line.get("yardstick"), &line["value"]), (None, None, &Value::Null));
    }

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
