//! The readable table at the end of a run, made from the lines of the report.

use std::fs;

use serde_json::Value;

use crate::figure::{report_file, this_run};

/// The position in the report where a run begins.
pub(crate) struct RunStart(u64);

impl RunStart {
    /// The current end of the report.
    pub(crate) fn now() -> Self {
        Self(fs::metadata(report_file()).map_or(0, |file| file.len()))
    }

    /// Prints the table of the lines that this run has added to the report since it began.
    #[expect(clippy::print_stdout, reason = "the table is this program's output")]
    pub(crate) fn print_table(&self) {
        let text = fs::read_to_string(report_file()).unwrap_or_default();
        let from = usize::try_from(self.0).unwrap_or(usize::MAX);
        let lines = text.get(from..).unwrap_or_default().lines();
        let lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines: Vec<Value> = lines.filter(|line| line["run"] == this_run()).collect();
        println!("\n{}", table(&lines));
    }
}

const HEAD: [&str; 7] = ["scenario", "figure", "value", "unit", "rounds", "ratio", "yardstick"];

/// The circumstances that are printed beside a figure's name: figures of the same name differ by them.
const SHOWN: [&str; 7] = ["appendfsync", "rate", "pending", "batch", "shards", "quick_repair", "names"];

/// The figures of report lines in columns, and below them the parts that were left out.
fn table(lines: &[Value]) -> String {
    let rows: Vec<_> = lines.iter().filter(|line| line["figure"].is_string()).map(row).collect();
    let mut widths = HEAD.map(str::len);
    for row in &rows {
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = cell.chars().count().max(*width));
    }
    let head = HEAD.map(str::to_owned);
    let mut text: Vec<String> = [head].iter().chain(&rows).map(|row| line(row, widths)).collect();
    for left in lines.iter().filter(|line| line["skipped"].is_string()) {
        let (scenario, what) = (str_of(left, "scenario"), str_of(left, "skipped"));
        let note = format!("{scenario}: no {what}: {}", str_of(left, "reason"));
        // Several figures may miss the same yardstick.
        if text.last() != Some(&note) {
            text.push(note);
        }
    }
    text.join("\n")
}

fn row(line: &Value) -> [String; HEAD.len()] {
    let (spread, yardstick) = (&line["spread"], &line["yardstick"]);
    let rounds = match spread["rounds"].as_u64() {
        Some(rounds) => format!("{rounds}: {} to {}", amount(&spread["min"]), amount(&spread["max"])),
        None => String::new(),
    };
    let (ratio, measure) = match yardstick["name"].as_str() {
        Some(name) => (
            line["ratio"].as_f64().map_or("?".to_owned(), |r| format!("{r:.2}")),
            format!("{name}: {}", amount(&yardstick["value"])),
        ),
        None => (String::new(), String::new()),
    };
    let mut figure = str_of(line, "figure").to_owned();
    for name in SHOWN {
        match &line["with"][name] {
            Value::Null => {}
            Value::String(text) => figure.push_str(&format!(", {text}")),
            other => figure.push_str(&format!(", {name} {other}")),
        }
    }
    [
        str_of(line, "scenario").to_owned(),
        figure,
        amount(&line["value"]),
        str_of(line, "unit").to_owned(),
        rounds,
        ratio,
        measure,
    ]
}

fn line(cells: &[String; HEAD.len()], widths: [usize; HEAD.len()]) -> String {
    let padded = cells.iter().zip(widths).enumerate().map(|(column, (cell, width))| match HEAD[column] {
        "value" | "ratio" => format!("{cell:>width$}"),
        _ => format!("{cell:width$}"),
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

fn str_of<'a>(line: &'a Value, name: &str) -> &'a str {
    line[name].as_str().unwrap_or_default()
}

/// A number with about three significant digits; `?` for anything else.
fn amount(value: &Value) -> String {
    match value.as_f64() {
        None => "?".to_owned(),
        Some(number) if number.abs() >= 1000.0 => format!("{number:.0}"),
        Some(number) if number.abs() >= 10.0 => format!("{number:.1}"),
        Some(number) => format!("{number:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_has_a_row_per_figure_and_a_line_for_what_was_left_out() {
        let lines = [
            json!({ "machine": {} }),
            json!({
                "scenario": "drain", "figure": "delivered", "value": 18_987.4, "unit": "jobs/s",
                "spread": { "min": 18_000.0, "max": 19_273.0, "rounds": 3 },
                "yardstick": { "name": "bare reqwest", "value": 40_000.0 }, "ratio": 0.4747,
                "with": { "appendfsync": "always", "jobs": 7 },
            }),
            json!({ "scenario": "drain", "skipped": "BullMQ", "reason": "there is no node" }),
        ];
        let wanted = "\
scenario  figure             value  unit    rounds             ratio  yardstick
drain     delivered, always  18987  jobs/s  3: 18000 to 19273   0.47  bare reqwest: 40000
drain: no BullMQ: there is no node";
        assert_eq!(table(&lines), wanted);
    }
}
