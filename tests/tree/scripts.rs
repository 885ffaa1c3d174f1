//! The Lua pieces of the Redis store: the head of each piece names exactly the other pieces whose tables it uses.

use std::collections::BTreeSet;
use std::path::Path;

use crate::files::{files_below, read, root};

/// Pieces that each script needs.
const OF_ALL: [&str; 2] = ["base", "start"];
/// Tables with another name than their piece, and the names of values that belong to one.
const OTHERS: [(&str, &str); 6] = [
    ("jobs.", "records"),
    ("record.", "records"),
    ("state.", "records"),
    ("records[", "records"),
    ("states[", "records"),
    ("fields.", "shard"),
];

#[test]
fn each_lua_piece_names_the_pieces_that_it_uses() {
    let folder = root().join("crates/store-redis/src");
    let names =
        files_below(&folder.join("prelude"), ".lua").iter().map(|file| name(file)).collect::<Vec<_>>();
    let names: Vec<_> = names.into_iter().filter(|name| !OF_ALL.contains(&name.as_str())).collect();
    let mut tables: Vec<(String, &str)> =
        names.iter().map(|name| (format!("{name}."), name.as_str())).collect();
    tables.extend(OTHERS.map(|(table, piece)| (table.to_owned(), piece)));
    let files = files_below(&folder, ".lua");
    assert!(files.len() > names.len(), "the scripts are there");
    // The start of a call clears every piece.
    for file in files.iter().filter(|file| name(file) != "start") {
        let text = read(file);
        let mut used: BTreeSet<&str> =
            tables.iter().filter(|(table, _)| uses(&text, table)).map(|(_, piece)| *piece).collect();
        if file.starts_with(folder.join("prelude")) {
            used.remove(name(file).as_str());
        }
        let named = named(&text);
        assert_eq!(named, used.iter().map(|piece| (*piece).to_owned()).collect(), "{}", file.display());
    }
}

fn name(file: &Path) -> String {
    file.file_stem().expect("a file has a name").to_string_lossy().into_owned()
}

/// Whether a Lua text uses a table outside of comments and strings.
fn uses(text: &str, table: &str) -> bool {
    text.lines().filter(|line| !line.trim_start().starts_with("--")).any(|line| {
        let code: String = line.split('\'').step_by(2).collect::<Vec<_>>().join("''");
        let code = code.split("--").next().unwrap_or_default();
        code.match_indices(table).any(|(at, _)| {
            !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == '.')
        })
    })
}

/// The pieces that the head of a file names, as in `-- Uses one, another.`
fn named(text: &str) -> BTreeSet<String> {
    let head = text.lines().map_while(|line| line.strip_prefix("--")).collect::<Vec<_>>().join(" ");
    let list = head.split(" Uses ").nth(1).and_then(|rest| rest.split('.').next()).unwrap_or_default();
    list.split(',').map(|piece| piece.trim().to_owned()).filter(|piece| !piece.is_empty()).collect()
}
