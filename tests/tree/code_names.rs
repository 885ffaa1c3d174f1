//! Names of code in the documents exist: items, files, `RINGBACK_` variables, metrics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proc_macro2::TokenTree;
use ringback_service::config::{ALL_NAMES, PREFIX};
use syn::visit::{self, Visit};
use syn::{Field, ImplItem, Item, ItemMod, Lit, TraitItemFn, Type, Variant};

use crate::files::{documents, files_below, read, root};
use crate::source::{each, name, parse, text, tokens};

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

/// The words between backticks that look like names of code, and the `RINGBACK_` variables anywhere in a text.
fn names(text: &str) -> BTreeSet<String> {
    let spans: Vec<_> =
        text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).flat_map(expanded).collect();
    let is_name_part = |c: char| c.is_alphanumeric() || "_-:/.".contains(c);
    let words = spans.iter().flat_map(|span| span.split(|c| !is_name_part(c)));
    let words = words.map(|word| word.trim_end_matches(['.', ':', '/'])).filter(|word| looks_like_code(word));
    let is_variable_part = |c: char| c.is_ascii_uppercase() || c == '_';
    let variables = text.split(|c| !is_variable_part(c)).map(|word| word.trim_end_matches('_'));
    words.chain(variables.filter(|word| word.starts_with(PREFIX))).map(str::to_owned).collect()
}

/// Expands files in braces, such as `a/{b,c}.rs`, to one text each. Any other text is returned as it is.
fn expanded(span: &str) -> Vec<String> {
    if let Some((before, rest)) = span.split_once('{')
        && let Some((files, after)) = rest.split_once('}')
        && (after.starts_with(".rs") || after.starts_with(".lua"))
    {
        return files.split(',').map(|file| format!("{before}{file}{after}")).collect();
    }
    vec![span.to_owned()]
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
        let (mut items, mut words) = (Items::default(), BTreeSet::new());
        for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "rs")) {
            items.visit_file(&parse(file));
            each(tokens(file), &mut |token| match token {
                TokenTree::Ident(ident) => drop(words.insert(text(ident))),
                TokenTree::Literal(literal) => {
                    if let Lit::Str(text) = Lit::new(literal.clone()) {
                        words.insert(text.value());
                    }
                }
                TokenTree::Group(_) | TokenTree::Punct(_) => {}
            });
        }
        let root = root();
        let with_folders = |file: &'_ PathBuf| -> Vec<PathBuf> {
            file.ancestors().map_while(|path| path.strip_prefix(&root).ok()).map(Path::to_owned).collect()
        };
        Self { paths: files.iter().flat_map(with_folders).collect(), items: items.found, words }
    }

    fn has(&self, name: &str) -> bool {
        if let Some(variable) = name.strip_prefix(PREFIX) {
            return ALL_NAMES.contains(&variable) || self.words.contains(name);
        }
        if let Some((name, module)) = name.strip_prefix("ringback_").and_then(|name| name.split_once("::")) {
            // The target of log lines: a module of a crate, or a text.
            let file = format!("crates/{}/src/{module}.rs", name.replace('_', "-"));
            return self.paths.iter().any(|path| path == Path::new(&file))
                || self.words.contains(&format!("ringback_{name}::{module}"));
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

/// The items that files define, as `Owner::item` and alone.
#[derive(Default)]
struct Items {
    found: BTreeSet<String>,
    /// The type or trait around an item.
    owner: Option<String>,
}

impl Items {
    fn define(&mut self, name: Option<String>) {
        if let Some(name) = name {
            self.found.extend(self.owner.as_ref().map(|owner| format!("{owner}::{name}")));
            self.found.insert(name);
        }
    }
}

impl<'ast> Visit<'ast> for Items {
    fn visit_item(&mut self, item: &'ast Item) {
        self.define(name(item));
        let owner = match item {
            Item::Enum(_) | Item::Struct(_) | Item::Trait(_) => name(item),
            Item::Impl(item) => match &*item.self_ty {
                Type::Path(path) => path.path.segments.last().map(|last| text(&last.ident)),
                _ => None,
            },
            _ => self.owner.clone(),
        };
        let around = std::mem::replace(&mut self.owner, owner);
        visit::visit_item(self, item);
        self.owner = around;
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.define(Some(text(&item.ident)));
        visit::visit_item_mod(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        self.define(match item {
            ImplItem::Const(item) => Some(text(&item.ident)),
            ImplItem::Fn(item) => Some(text(&item.sig.ident)),
            ImplItem::Type(item) => Some(text(&item.ident)),
            _ => None,
        });
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.define(Some(text(&item.sig.ident)));
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_field(&mut self, field: &'ast Field) {
        self.define(field.ident.as_ref().map(text));
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        self.define(Some(text(&variant.ident)));
    }
}
