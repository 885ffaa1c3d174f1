//! No file of the crates reaches itself through the files that it imports from, except from its child modules.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::files::{crates, root};
use crate::imports::{Graph, graph};

/// Imports from modules below a file do not count: `impl` blocks of its types are there, and it calls them.
#[test]
fn no_file_imports_from_a_file_that_imports_from_it() {
    let mut graph = graph(crates().iter().map(|(name, source)| (name.clone(), source.as_path())));
    for (file, targets) in &mut graph {
        targets.retain(|target, _| !is_below(target, file));
    }
    let circles = circles(&graph);
    assert!(circles.is_empty(), "{} circles of imports:\n{}", circles.len(), circles.join("\n"));
}

/// Whether a file is a module below the module of another file.
fn is_below(file: &Path, parent: &Path) -> bool {
    let is_root = parent.ends_with("lib.rs") || parent.ends_with("main.rs");
    file.starts_with(if is_root { parent.with_file_name("") } else { parent.with_extension("") })
}

/// For each set of files that reach each other: their number and the shortest circle, as text.
fn circles(graph: &Graph) -> Vec<String> {
    let (mut circles, mut seen) = (Vec::new(), BTreeSet::<&PathBuf>::new());
    let reached: BTreeMap<_, _> = graph.keys().map(|file| (file, reachable(graph, file))).collect();
    for (file, reach) in &reached {
        if seen.contains(file) || !reach.contains_key(*file) {
            continue;
        }
        let is_mutual = |other: &&&PathBuf| reached.get(**other).is_some_and(|back| back.contains_key(*file));
        let members: Vec<_> = reach.keys().filter(is_mutual).collect();
        let around = members.iter().map(|member| way_back(graph, &reached[**member], member));
        let shortest = around.min_by_key(Vec::len).expect("a circle has members");
        circles.push(format!("{} files: {}", members.len(), written(graph, &shortest)));
        seen.extend(members);
    }
    circles
}

/// The files that a file reaches by one or more imports, each with the file before it on a shortest path.
fn reachable<'a>(graph: &'a Graph, from: &'a PathBuf) -> BTreeMap<&'a PathBuf, &'a PathBuf> {
    let (mut before, mut queue) = (BTreeMap::new(), VecDeque::from([from]));
    while let Some(file) = queue.pop_front() {
        for next in graph.get(file).into_iter().flat_map(BTreeMap::keys) {
            if !before.contains_key(next) {
                before.insert(next, file);
                queue.push_back(next);
            }
        }
    }
    before
}

/// A shortest path from a file back to itself, by the predecessors that [`reachable`] has found from that file.
fn way_back(graph: &Graph, before: &BTreeMap<&PathBuf, &PathBuf>, file: &PathBuf) -> Vec<PathBuf> {
    let mut way = vec![file.clone()];
    let mut at = before[file];
    while at != file {
        way.push(at.clone());
        at = before[at];
    }
    way.push(file.clone());
    way.reverse();
    debug_assert!(way.windows(2).all(|step| graph[&step[0]].contains_key(&step[1])));
    way
}

/// Formats a path as `a.rs -> b.rs (names) -> a.rs (names)`.
fn written(graph: &Graph, way: &[PathBuf]) -> String {
    let short = |file: &Path| file.strip_prefix(root()).unwrap_or(file).display().to_string();
    let mut text = short(&way[0]);
    for step in way.windows(2) {
        let names: Vec<_> = graph[&step[0]][&step[1]].iter().map(String::as_str).collect();
        write!(text, " -> {} ({})", short(&step[1]), names.join(", ")).expect("a string grows");
    }
    text
}

/// The circles of a crate `planted` that consists of these files.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().expect("it is in a folder")).expect("a folder");
        std::fs::write(file, text).expect("a file");
    }
    let circles = circles(&graph([("planted".to_owned(), folder.path())]));
    let prefix = format!("{}/", folder.path().display());
    circles.iter().map(|circle| circle.replace(&prefix, "")).collect()
}

#[test]
fn a_circle_is_found_through_a_file_that_only_reexports() {
    let found = circles_of(&[
        ("lib.rs", "mod a;\nmod facade;\nuse crate::a::A;"),
        ("a.rs", "use crate::facade::B as Other;\npub struct A(Other);"),
        ("facade.rs", "mod b;\npub use self::b::{B, B as C};"),
        ("facade/b.rs", "use crate::a;\npub struct B;\npub fn f(_: a::A) {}"),
    ]);
    assert_eq!(found, ["2 files: a.rs -> facade/b.rs (B) -> a.rs (A)"]);
}

#[test]
fn a_circle_is_found_between_a_module_and_its_child() {
    let found = circles_of(&[
        ("lib.rs", "pub mod parent;"),
        ("parent.rs", "mod child;\nuse child::run;\npub(crate) const LIMIT: usize = 1;"),
        ("parent/child.rs", "pub(super) fn run() -> usize { super::LIMIT }"),
    ]);
    assert_eq!(found, ["2 files: parent/child.rs -> parent.rs (LIMIT) -> parent/child.rs (run)"]);
}

#[test]
fn a_circle_of_three_is_found_through_the_name_of_the_crate_and_a_glob() {
    let found = circles_of(&[
        ("main.rs", "fn main() { planted::a::one() }"),
        ("lib.rs", "pub mod a;\npub mod b;\npub mod c;"),
        ("a.rs", "pub fn one() { planted::b::two() }"),
        ("b.rs", "use crate::c::*;\npub fn two() { r#three() }\nfn g() { super::c::three() }"),
        ("c.rs", "pub fn three() { crate::a::one() }"),
    ]);
    assert_eq!(found, ["3 files: a.rs -> b.rs (two) -> c.rs (*, three) -> a.rs (one)"]);
}

#[test]
fn declarations_tests_comments_and_strings_are_no_imports() {
    let found = circles_of(&[
        ("lib.rs", "mod a;\nmod b;\npub struct Root;"),
        ("a.rs", "use crate::b::B;\npub struct A(B);\n#[cfg(test)]\nmod tests { use crate::Root; }"),
        (
            "b.rs",
            "// crate::a::A\n/* use crate::a::A; */\npub struct B;\n#[cfg(test)]\nuse crate::a::A;\n\
             const TEXT: &str = \"crate::a::A\\\"\";\nconst RAW: &str = r#\"\"crate::a::A\"#;\nfn f<'a>(c: &'a char) -> bool { *c == '\"' }",
        ),
    ]);
    assert_eq!(found, [""; 0]);
}
