//! The report on a run: what the checker says, the lines that prove what is violated, and how to repeat the run.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::history::{Report, check};

use crate::options::Options;
use crate::store_kind::StoreKind;

/// The most lines of a history that are printed.
const MAX_LINES: usize = 60;

/// Checks the history, prints the report and how to repeat the run, keeps or removes the file. Returns the exit status.
#[expect(clippy::print_stdout, reason = "the report is this program's output")]
pub(crate) fn judge(store: StoreKind, options: &Options, path: &Path) -> u8 {
    let read = || BufReader::new(File::open(path).expect("the history was written"));
    let report = match check(read()) {
        Ok(report) => report,
        Err(unreadable) => {
            println!("{}: {unreadable}", path.display());
            return 2;
        }
    };
    let totals = &report.totals;
    let wrong = totals.lost + totals.early + totals.invented;
    // Runs on the same store with other faults count too.
    let by = format!("chaos on {store}, seed {}, {} chosen faults", options.seed, options.kinds.len());
    Reached::new(Figure::Kills, &by, totals.kills).wrong(wrong).write();
    println!("{report}");
    for (kind, count) in &report.totals.faults {
        println!("{count:>12}  {kind}");
    }
    if !report.clean {
        print_proof(&report, read());
    }
    if report.clean && options.keep.is_none() {
        // If this fails, the file stays in the directory of temporary files.
        let _ = std::fs::remove_file(path);
    } else {
        println!("history: {}", path.display());
    }
    println!(
        "repeat:  chaos --store={} --seconds={} --seed={}{}",
        store,
        options.seconds,
        options.seed,
        rest(options)
    );
    u8::from(!report.clean)
}

/// The command-line arguments that repeat the run besides store, seconds and seed.
fn rest(options: &Options) -> String {
    let kinds: Vec<_> = options.kinds.iter().map(|kind| kind.name()).collect();
    let faults = if kinds.is_empty() { String::new() } else { format!(" --faults={}", kinds.join(",")) };
    let lossy = if options.is_lossy { " --lossy" } else { "" };
    format!(" --rate={}{faults}{lossy}", options.rate)
}

/// Prints up to [`MAX_LINES`] lines of the history that prove violations.
#[expect(clippy::print_stdout, reason = "the report is this program's output")]
fn print_proof(report: &Report, history: BufReader<File>) {
    let lines: BTreeSet<_> = report.violations.iter().flat_map(|violation| &violation.lines).collect();
    let last = lines.iter().nth(MAX_LINES - 1).or(lines.last());
    let Some(last) = last.map(|last| **last as usize) else { return };
    for (place, text) in history.lines().enumerate().take(last) {
        let number = u32::try_from(place + 1).expect("a line has a number");
        if lines.contains(&number) {
            println!("line {number}: {}", text.expect("the history is text"));
        }
    }
}
