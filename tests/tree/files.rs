//! Finds and reads files of the source tree: its root, files by their ending, crates and documents.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is a folder of the repository").to_owned()
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files below a folder whose paths end with `ending`, sorted.
pub(crate) fn files_below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut entries: Vec<_> = entries.map(|entry| entry.expect("a folder that can be read").path()).collect();
    entries.sort();
    let mut files = Vec::new();
    for path in entries {
        if path.is_dir() {
            files.extend(files_below(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            files.push(path);
        }
    }
    files
}

/// The crates of the product: the name that `use` has for each, and the folder of its source.
pub(crate) fn crates() -> Vec<(String, PathBuf)> {
    let manifests = files_below(&root().join("crates"), "/Cargo.toml");
    let name = |manifest: &PathBuf| {
        let text = read(manifest);
        let name = text.lines().find_map(|line| line.strip_prefix("name = \""));
        name.expect("a package has a name").trim_end_matches('"').replace('-', "_")
    };
    manifests.iter().map(|manifest| (name(manifest), manifest.with_file_name("src"))).collect()
}

/// The documents: all of `docs`, the README and the changelog.
pub(crate) fn documents() -> Vec<PathBuf> {
    let mut documents = files_below(&root().join("docs"), ".md");
    documents.extend(["README.md", "CHANGELOG.md"].map(|name| root().join(name)));
    documents
}
