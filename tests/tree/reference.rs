//! The pages of `docs/reference` are made from the declarations of the code: settings, metrics, commands and the
//! OpenAPI document. A test compares each page with its file; `make docs` writes the files. Text without a declaration
//! is in `heads`.

mod api;
mod api_schemas;
mod cli;
mod configuration;
pub(crate) mod metrics;

use std::fs;

use ringback_testkit::variable;

use crate::files::{read, root};

/// The variable with which the pages are written.
const WRITE: &str = "RINGBACK_WRITE_DOCS";

#[test]
fn every_reference_page_is_what_the_code_declares() {
    let pages = [
        ("api", api::page()),
        ("cli", cli::page()),
        ("configuration", configuration::page()),
        ("metrics", metrics::page()),
    ];
    let is_writing = variable::<String>(WRITE).is_some();
    for (name, page) in pages {
        let file = root().join("docs/reference").join(name).with_extension("md");
        if is_writing {
            fs::write(&file, page).expect("a file");
        } else {
            assert!(read(&file) == page, "{} is not current: write it with `make docs`", file.display());
        }
    }
}

/// A text in one line for a cell of a table, with `|` escaped.
fn cell(text: &str) -> String {
    line(text).replace('|', "\\|")
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first `most` sentences of a text.
fn sentences(text: &str, most: usize) -> &str {
    let mut ends = text.match_indices(". ").map(|(end, _)| end + 1);
    ends.nth(most - 1).map_or(text, |end| &text[..end])
}

/// A link to the section with a heading.
fn section_link(heading: &str) -> String {
    format!("[{heading}](#{})", heading.to_lowercase().replace(' ', "-"))
}

/// A text in one line that ends with a full stop, unless it is empty or ends with `!` or `?`.
fn sentence(text: &str) -> String {
    let text = line(text);
    if text.is_empty() || text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}
