//! The graph of imports: which file uses which names of which file. A re-exported name is of the file that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::modules::Modules;

/// For each file the files that it imports from, and the names it takes from each.
pub(crate) type Graph = BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>;

/// What a path leads to.
enum Target {
    Module(usize),
    /// An item, by the module that it is written in.
    Item(usize),
}

/// A name whose re-exports lead through more modules than this goes in circles.
const MAX_REEXPORTS: usize = 20;

struct Crates {
    modules: Modules,
    /// Libraries by the name that `use` has for them.
    libraries: BTreeMap<String, usize>,
}

/// The graph of the crates whose sources are in these folders, each with the name that `use` has for it.
pub(crate) fn graph<'a>(crates: impl IntoIterator<Item = (String, &'a Path)>) -> Graph {
    let mut all = Crates { modules: Modules::default(), libraries: BTreeMap::new() };
    for (name, source) in crates {
        let mut binaries = crate::files::files_below(source, ".rs");
        binaries.retain(|file| file == &source.join("main.rs") || file.parent() == Some(&source.join("bin")));
        for root in binaries {
            all.modules.add_crate(&root);
        }
        if source.join("lib.rs").exists() {
            let root = all.modules.add_crate(&source.join("lib.rs"));
            all.libraries.insert(name, root);
        }
    }
    all.graph()
}

impl Crates {
    fn graph(&self) -> Graph {
        let mut graph = Graph::new();
        for (id, module) in self.modules.0.iter().enumerate() {
            let from = graph.entry(module.file.clone()).or_default();
            let mut add = |target: usize, name: &str| {
                let target = &self.modules.0[target].file;
                if target != &module.file {
                    from.entry(target.clone()).or_default().insert(name.to_owned());
                }
            };
            for path in module.imports.iter().map(|(_, path)| path).chain(&module.paths) {
                if let Some(Target::Item(target)) = self.resolve(id, path, MAX_REEXPORTS) {
                    add(target, path.last().expect("a path has a name"));
                }
            }
            for path in &module.globs {
                if let Some(Target::Item(target) | Target::Module(target)) =
                    self.resolve(id, path, MAX_REEXPORTS)
                {
                    add(target, "*");
                }
            }
        }
        graph
    }

    /// What a path leads to, from a module; `None` if it leads outside the workspace or through too many re-exports.
    fn resolve(&self, from: usize, path: &[String], limit: usize) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Target::Module(self.root(from)),
            "self" => Target::Module(from),
            "super" => Target::Module(self.modules.0[from].parent?),
            name => match self.find(from, name, rest.is_empty(), limit) {
                Some(target) => target,
                None => Target::Module(*self.libraries.get(name)?),
            },
        };
        while let Target::Module(module) = at {
            let Some((name, after)) = rest.split_first() else { break };
            rest = after;
            at = match name.as_str() {
                "super" => Target::Module(self.modules.0[module].parent?),
                // A name that is not found is one that a macro has written in that module.
                name => self.find(module, name, rest.is_empty(), limit).unwrap_or(Target::Item(module)),
            };
        }
        Some(at)
    }

    /// Finds a name in a module's scope. If a module and an item share a name, the last segment of a path is the item.
    /// `None` if the name is not there.
    fn find(&self, module: usize, name: &str, is_end: bool, limit: usize) -> Option<Target> {
        let limit = limit.checked_sub(1)?;
        let scope = &self.modules.0[module];
        let child = scope.children.get(name).map(|child| Target::Module(*child));
        if child.is_some() && !is_end {
            return child;
        }
        if scope.items.contains(name) {
            return Some(Target::Item(module));
        }
        // A handler goes under the name that `utoipa` derives for its documentation.
        let imported = scope.imports.iter().filter(|(alias, path)| {
            let is_itself = path.len() == 1 && &path[0] == alias;
            !is_itself && (alias == name || alias.strip_prefix("__path_") == Some(name))
        });
        let imported = imported.filter_map(|(_, path)| self.resolve(module, path, limit)).next();
        let by_glob = || {
            let modules = scope.globs.iter().filter_map(|path| self.resolve(module, path, limit));
            modules.filter_map(|target| match target {
                Target::Module(module) => self.find(module, name, is_end, limit),
                Target::Item(_) => None,
            })
        };
        imported.or(child).or_else(|| by_glob().next())
    }

    fn root(&self, mut module: usize) -> usize {
        while let Some(parent) = self.modules.0[module].parent {
            module = parent;
        }
        module
    }
}
