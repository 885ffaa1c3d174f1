//! Code that documents name exists: items, files, variables, metrics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ringback_service::config::{ALL_NAMES, PREFIX};

use crate::files::{documents, files_below, read, root};
use crate::tokens::{Token, tokens};

/// Items of libraries, and an address.
const ELSEWHERE: [&str; 2] = ["Durability::None", "::1"];

/// The source tree, as far as names are looked up in it.
struct Source {
    /// All files and folders, from the root.
    paths: Vec<PathBuf>,
    /// Functions, types, variants and so on, alone and as `Owner::item`.
    items: BTreeSet<String>,
    /// Identifiers and the texts of string literals.
    words: BTreeSet<String>,
}

#[test]
fn every_name_of_code_in_a_document_exists() {
    let source = Source::read();
    let mut stale = Vec::new();
    for document in documents().iter().filter(|document| !document.ends_with("CHANGELOG.md")) {
        let text = read(document);
        let missing = names(&text).into_iter().filter(|name| !source.has(name));
        stale.extend(missing.map(|name| format!("{}: {name}", document.display())));
    }
    assert!(stale.is_empty(), "{} names of code that does not exist: {stale:#?}", stale.len());
}

#[test]
fn names_of_code_are_found_in_text_and_looked_up() {
    let text = "`Store::submit` of `crates/core` by `RINGBACK_STORE=redis://h`, `GET /v1/jobs` and\n\
        `ringback_api_accepted_jobs_total{topic}`; not `topic/id`, `a::b` of ```\nx.rs `Clock::now()`, `clock.rs`";
    let found: Vec<_> = names(text).into_iter().collect();
    let wanted = [
        "Clock::now",
        "RINGBACK_STORE",
        "Store::submit",
        "a::b",
        "clock.rs",
        "crates/core",
        "ringback_api_accepted_jobs_total",
    ];
    assert_eq!(found, wanted);
    let source = Source::read();
    for name in ["Timestamp::as_millis", "State::Delayed", "crates/core", "clock.rs", "RINGBACK_STORE"] {
        assert!(source.has(name), "{name}");
    }
    let unset = format!("{PREFIX}NONE");
    for name in ["Timestamp::as_hours", "State::Lost", "Courier::hold", "crates/none", "none.rs", &unset] {
        assert!(!source.has(name), "{name}");
    }
}

/// The words between backticks, and the variables anywhere, that look like names of code.
fn names(text: &str) -> BTreeSet<String> {
    let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_name_part = |c: char| c.is_alphanumeric() || "_-:/.".contains(c);
    let words = spans.flat_map(|span| span.split(|c| !is_name_part(c)));
    let words = words.map(|word| word.trim_end_matches(['.', ':', '/'])).filter(|word| looks_like_code(word));
    let is_variable_part = |c: char| c.is_ascii_uppercase() || c == '_';
    let variables = text.split(|c| !is_variable_part(c)).map(|word| word.trim_end_matches('_'));
    words.chain(variables.filter(|word| word.starts_with(PREFIX))).map(str::to_owned).collect()
}

fn looks_like_code(word: &str) -> bool {
    let is_file = [".rs", ".lua", ".sh"].iter().any(|ending| word.ends_with(ending));
    let is_folder = ["crates/", "tests/", "deploy/", "docs/"].iter().any(|folder| word.starts_with(folder));
    let is_item = word.contains("::") && !word.contains('/');
    is_file || is_folder || is_item || word.starts_with("ringback_")
}

impl Source {
    fn read() -> Self {
        let folders = ["crates", "tests", "deploy", "docs", ".ci"].map(|folder| root().join(folder));
        let files: Vec<_> = folders.iter().flat_map(|folder| files_below(folder, "")).collect();
        let (mut items, mut words) = (BTreeSet::new(), BTreeSet::new());
        for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "rs")) {
            let tokens = tokens(&read(file));
            items.extend(items_of(&tokens));
            words.extend(tokens.into_iter().filter_map(|token| match token {
                Token::Ident(text) | Token::Text(text) => Some(text),
                Token::Path | Token::Sign(_) => None,
            }));
        }
        let root = root();
        let with_folders = |file: &'_ PathBuf| -> Vec<PathBuf> {
            file.ancestors().map_while(|path| path.strip_prefix(&root).ok()).map(Path::to_owned).collect()
        };
        Self { paths: files.iter().flat_map(with_folders).collect(), items, words }
    }

    fn has(&self, name: &str) -> bool {
        if let Some(variable) = name.strip_prefix(PREFIX) {
            return ALL_NAMES.contains(&variable) || self.words.contains(name);
        }
        if let Some((before, item)) = name.rsplit_once("::") {
            let owner = before.rsplit("::").next().unwrap_or_default();
            let is_module = owner.starts_with(char::is_lowercase);
            return ELSEWHERE.contains(&name)
                || self.items.contains(&format!("{owner}::{item}"))
                || (is_module && self.items.contains(owner) && self.items.contains(item));
        }
        let is_metric_or_crate = name.starts_with("ringback_") && self.words.contains(name);
        is_metric_or_crate || self.paths.iter().any(|path| path.ends_with(name))
    }
}

/// Keywords that a defined name follows.
const DEFINING: [&str; 8] = ["fn", "const", "static", "struct", "enum", "trait", "type", "mod"];

/// The items of each type, trait and module that a file defines, as `Owner::item`; of a module only the item.
fn items_of(tokens: &[Token]) -> BTreeSet<String> {
    let mut items = BTreeSet::new();
    // The types around a token: the name, the depth of the braces, and whether each word in them is a member.
    let (mut around, mut depth, mut owner) = (Vec::<(String, usize, bool)>::new(), 0, None);
    let mut has_members = false;
    for pair in tokens.windows(2) {
        match pair {
            [Token::Sign('{'), _] => {
                depth += 1;
                around.extend(owner.take().map(|owner| (owner, depth, has_members)));
            }
            [Token::Sign('}'), _] => {
                around.pop_if(|(_, own, _)| *own == depth);
                depth -= 1;
            }
            [Token::Sign(';'), _] => owner = None,
            [Token::Ident(word), Token::Ident(name)] if DEFINING.contains(&word.as_str()) => {
                items.extend(around.last().map(|(owner, ..)| format!("{owner}::{name}")));
                items.insert(name.clone());
                if ["enum", "struct", "trait"].contains(&word.as_str()) {
                    (owner, has_members) = (Some(name.clone()), word != "trait");
                }
            }
            // The last name with a capital before the brace: `impl<T> Trait for Owner<T> {`.
            [Token::Ident(word), _] if word == "impl" && around.is_empty() => {
                (owner, has_members) = (Some(String::new()), false);
            }
            [Token::Ident(name), Token::Sign('{' | '<')] if owner.is_some() => owner = Some(name.clone()),
            [Token::Ident(name), _] => {
                let member_of = around.last().filter(|(_, own, has_members)| *has_members && *own == depth);
                items.extend(member_of.map(|(owner, ..)| format!("{owner}::{name}")));
            }
            _ => {}
        }
    }
    items
}
