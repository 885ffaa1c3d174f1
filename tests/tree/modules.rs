//! The modules of a crate, read from its source: what each defines, imports and names by path.
//!
//! Modules and items behind `#[cfg(test)]` are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemMod, ItemUse, Macro, Meta, UseTree};

use crate::source::{is_test, name, parse, text};

#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Where it is written; several inline modules may share a file.
    pub(crate) file: PathBuf,
    pub(crate) parent: Option<usize>,
    pub(crate) children: BTreeMap<String, usize>,
    pub(crate) items: BTreeSet<String>,
    /// Imported names and the paths that they stand for.
    pub(crate) imports: Vec<(String, Vec<String>)>,
    /// Modules whose whole content is imported.
    pub(crate) globs: Vec<Vec<String>>,
    /// Paths of two and more segments, outside `use`.
    pub(crate) paths: BTreeSet<Vec<String>>,
}

/// All modules of all crates.
#[derive(Debug, Default)]
pub(crate) struct Modules(pub(crate) Vec<Module>);

impl Modules {
    /// Reads a crate from its root file, and returns the number of its root module.
    pub(crate) fn add_crate(&mut self, root: &Path) -> usize {
        self.add_file(root, root.with_file_name(""), None)
    }

    /// Reads a module from its file. Returns its number. `below` is the folder of the modules that the file declares.
    fn add_file(&mut self, file: &Path, below: PathBuf, parent: Option<usize>) -> usize {
        let id = self.add(file, parent);
        Scan { modules: self, id, below, is_test: false }.items(&parse(file).items);
        id
    }

    fn add(&mut self, file: &Path, parent: Option<usize>) -> usize {
        self.0.push(Module { file: file.to_owned(), parent, ..Module::default() });
        self.0.len() - 1
    }
}

/// Reads a module.
struct Scan<'a> {
    modules: &'a mut Modules,
    id: usize,
    below: PathBuf,
    is_test: bool,
}

impl Scan<'_> {
    fn module(&mut self) -> &mut Module {
        &mut self.modules.0[self.id]
    }

    fn items(&mut self, items: &[Item]) {
        items.iter().for_each(|item| self.visit_item(item));
    }

    /// Adds a module that is inline or in its own file. Leaves out files whose name ends with `tests`.
    fn child(&mut self, item: &ItemMod) {
        let (name, file) = (text(&item.ident), self.module().file.clone());
        let below = self.below.join(&name);
        let child = match &item.content {
            Some((_, items)) => {
                let id = self.modules.add(&file, Some(self.id));
                Scan { modules: &mut *self.modules, id, below, is_test: false }.items(items);
                id
            }
            None if name.ends_with("tests") => return,
            None => self.modules.add_file(&below.with_extension("rs"), below, Some(self.id)),
        };
        self.module().children.insert(name, child);
    }

    /// Adds the paths in tokens that are not parsed, such as the arguments of macros.
    fn unparsed(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::new(), 0);
        for token in tokens {
            match &token {
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.path(std::mem::take(&mut path));
                    }
                    path.push(text(name));
                    colons = 0;
                }
                TokenTree::Group(group) => self.unparsed(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => colons = 0,
            }
        }
        self.path(path);
    }

    fn path(&mut self, path: Vec<String>) {
        if path.len() > 1 && !self.is_test {
            self.module().paths.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for Scan<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let around = self.is_test;
        visit::visit_item(self, item);
        if !self.is_test {
            self.module().items.extend(name(item));
        }
        self.is_test = around;
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let around = self.is_test;
        visit::visit_impl_item(self, item);
        self.is_test = around;
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        self.is_test |= is_test(attribute);
        if let Meta::List(list) = &attribute.meta {
            self.unparsed(list.tokens.clone());
        }
        visit::visit_attribute(self, attribute);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        item.attrs.iter().for_each(|attribute| self.visit_attribute(attribute));
        if !self.is_test {
            self.child(item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        item.attrs.iter().for_each(|attribute| self.visit_attribute(attribute));
        if !self.is_test {
            self.module().import(&item.tree, &[]);
        }
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        self.unparsed(item.tokens.clone());
        visit::visit_macro(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.path(path.segments.iter().map(|segment| text(&segment.ident)).collect());
        visit::visit_path(self, path);
    }
}

impl Module {
    fn import(&mut self, tree: &UseTree, prefix: &[String]) {
        let with = |ident| [prefix, &[text(ident)]].concat();
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &with(&path.ident)),
            UseTree::Name(name) if name.ident == "self" && !prefix.is_empty() => {
                self.imports.push((prefix[prefix.len() - 1].clone(), prefix.to_vec()));
            }
            UseTree::Name(name) => self.imports.push((text(&name.ident), with(&name.ident))),
            UseTree::Rename(name) => self.imports.push((text(&name.rename), with(&name.ident))),
            UseTree::Glob(_) => self.globs.push(prefix.to_vec()),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree, prefix)),
        }
    }
}
