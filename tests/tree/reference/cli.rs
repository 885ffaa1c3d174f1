//! The page of the command line, from the definitions of its commands and flags.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command};
use ringback_service::config::ALL_NAMES;
use ringback_wire::{JobRequest, PolicyRequest, Request as _};

use super::{line, section_link, sentence};

const HEAD: &str = include_str!("heads/cli.md");
/// The section that has an argument in a form.
type Known = BTreeMap<String, String>;

/// The headings of flags that many commands share, as sections of the page.
const SHARED: [&str; 2] = ["Server and output", "Filter"];

pub(super) fn page() -> String {
    let mut command = ringback::command();
    command.build();
    let mut page = HEAD.to_owned();
    let list = command.find_subcommand("list").expect("a command with a filter");
    let mut known = BTreeMap::new();
    for (heading, of) in SHARED.iter().zip([&command, list]) {
        write!(page, "\n## {heading}\n\n").expect("a text");
        flags(&mut page, (of, heading), &mut known, |arg| arg.get_help_heading() == Some(*heading));
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        section(&mut page, below, "##", &mut known);
    }
    page
}

/// Adds a command and those below it.
fn section(page: &mut String, command: &Command, heading: &str, known: &mut Known) {
    let name = command.get_bin_name().unwrap_or_default();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    write!(page, "\n{heading} {name}\n\n{}\n", sentence(&about)).expect("a text");
    let below: Vec<_> = command.get_subcommands().filter(|below| below.get_name() != "help").collect();
    if below.is_empty() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").lines().map(str::trim).collect::<Vec<_>>();
        write!(page, "\n```text\n{}\n```\n\n", usage.join("\n")).expect("a text");
        let is_shared = |arg: &Arg| SHARED.iter().any(|name| arg.get_help_heading() == Some(*name));
        flags(page, (command, name), known, |arg| !is_shared(arg) && !is_setting(arg));
        if command.get_arguments().any(is_setting) {
            page.push_str("- A flag for each [setting](configuration.md) that is not a secret.\n");
        }
        if command.get_arguments().any(|arg| arg.get_help_heading() == Some("Filter")) {
            page.push_str("- The [filter](#filter).\n");
        }
    }
    for note in notes(command) {
        write!(page, "\n{note}\n").expect("a text");
    }
    for command in below {
        section(page, command, "###", known);
    }
}

/// The parts of a command's help that begin with `Exit codes`. Examples and other notes are left out.
fn notes(command: &Command) -> Vec<String> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let codes = after.split("\n\n").filter(|part| part.starts_with("Exit codes"));
    codes.map(sentence).collect()
}

/// Whether an argument is the flag of a setting.
fn is_setting(arg: &Arg) -> bool {
    ALL_NAMES.contains(&arg.get_id().as_str())
}

/// Adds a line for each chosen argument. One that an earlier section has in the same form gets a link to that section,
/// and one that sets a field of a submit a link to the fields, beside what only its help says.
fn flags(
    page: &mut String,
    (command, section): (&Command, &str),
    known: &mut Known,
    is_chosen: impl Fn(&Arg) -> bool,
) {
    let is_shown = |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    let request = request_of(section);
    let (mut as_for, mut of_fields) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
    for arg in command.get_arguments().filter(is_shown).filter(|arg| is_chosen(arg)) {
        let flag = format!("- `{}`: {}\n", name(arg), meaning(arg));
        if let Some(section) = known.get(&flag) {
            as_for.entry(section.clone()).or_default().push(format!("`{}`", name(arg)));
            continue;
        }
        match request.and_then(|(_, fields)| beyond_field(arg, fields)) {
            Some(own) => {
                let name = name(arg);
                let shown = if own.is_empty() { &name } else { name.split(' ').next().unwrap_or_default() };
                of_fields.push(format!("`{shown}`"));
                if !own.is_empty() {
                    writeln!(page, "- `{name}`: {own}").expect("a text");
                }
            }
            None => page.push_str(&flag),
        }
        known.insert(flag, section.to_owned());
    }
    if let Some((request, _)) = request {
        let (names, anchor) = (of_fields.join(", "), request.to_lowercase());
        writeln!(page, "- As the fields of [{request}](api.md#{anchor}): {names}.").expect("a text");
    }
    for (section, names) in as_for {
        writeln!(page, "- As for {}: {}.", section_link(&section), names.join(", ")).expect("a text");
    }
}

/// The request that most flags of a command make, with the descriptions of its fields.
fn request_of(command: &str) -> Option<(&'static str, &'static [&'static str])> {
    match command {
        "ringback submit" => Some(("JobRequest", JobRequest::ABOUT)),
        "ringback policy set" => Some(("PolicyRequest", PolicyRequest::ABOUT)),
        _ => None,
    }
}

/// What the help of an argument says, with its values, beyond the description of one of these fields; `None` if it does
/// not begin with one.
fn beyond_field(arg: &Arg, fields: &[&str]) -> Option<String> {
    let help = line(&arg.get_help()?.to_string());
    let ends = help.match_indices(". ").map(|(end, _)| end).chain([help.len()]);
    let is_field = |end: &usize| fields.iter().any(|about| plain(about).starts_with(&plain(&help[..*end])));
    let end = ends.take_while(is_field).last()?;
    Some(meaning(arg)[end..].trim_start_matches(['.', ' ']).to_owned())
}

/// A text without the marks of names of fields and flags.
fn plain(text: &str) -> String {
    line(text).replace(['`'], "").replace("--", "").replace('-', "_")
}

/// The help of an argument with its values (up to seven), default and variable.
fn meaning(arg: &Arg) -> String {
    let mut meaning = sentence(&arg.get_help().map(ToString::to_string).unwrap_or_default());
    if let ArgAction::Set | ArgAction::Append = arg.get_action() {
        let values: Vec<_> =
            arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
        if !values.is_empty() && values.len() < 8 {
            write!(meaning, " One of {}.", values.join(", ")).expect("a text");
        }
        let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        if !defaults.is_empty() {
            write!(meaning, " Default: `{}`.", defaults.join(" ")).expect("a text");
        }
    }
    if let Some(variable) = arg.get_env() {
        write!(meaning, " Variable: `{}`.", variable.to_string_lossy()).expect("a text");
    }
    meaning
}

/// An argument as it is written, with the names of its values.
fn name(arg: &Arg) -> String {
    let value = arg.get_value_names().unwrap_or_default().join(" ");
    let value = match arg.get_action() {
        ArgAction::Set | ArgAction::Append => value,
        _ => String::new(),
    };
    let flag = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => String::new(),
    };
    format!("{flag} {value}").trim().to_owned()
}
