//! The modules of a crate, read from its source: what each defines, imports and names by path.
//!
//! Modules and items behind `#[cfg(test)]` are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::files::read;
use crate::tokens::{Token, tokens};

/// One module.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Where it is written; several inline modules may share a file.
    pub(crate) file: PathBuf,
    pub(crate) parent: Option<usize>,
    pub(crate) children: BTreeMap<String, usize>,
    /// Items that are written in it.
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
    /// Reads a crate from its root file, and gives its root module.
    pub(crate) fn add_crate(&mut self, root: &Path) -> usize {
        self.add_file(root, root.with_file_name(""), None)
    }

    /// `below` is the folder of the modules that the file declares.
    fn add_file(&mut self, file: &Path, below: PathBuf, parent: Option<usize>) -> usize {
        let id = self.add(file, parent);
        let tokens = tokens(&read(file));
        self.scan(&tokens, id, below);
        id
    }

    fn add(&mut self, file: &Path, parent: Option<usize>) -> usize {
        self.0.push(Module { file: file.to_owned(), parent, ..Module::default() });
        self.0.len() - 1
    }

    fn scan(&mut self, tokens: &[Token], id: usize, below: PathBuf) {
        // The inline modules around a token, each with the depth of its braces.
        let mut around = vec![(id, below, 0)];
        let (mut at, mut depth, mut path_attribute) = (0, 0, None);
        while at < tokens.len() {
            let (id, below, own_depth) = around.last().expect("the file itself stays").clone();
            let rest = &tokens[at..];
            if is_test(rest) {
                at += item_length(rest);
                continue;
            }
            match rest {
                [Token::Sign('{'), ..] => depth += 1,
                [Token::Sign('}'), ..] => {
                    depth -= 1;
                    if around.len() > 1 && depth < own_depth {
                        around.pop();
                    }
                }
                [Token::Sign('['), Token::Ident(path), Token::Sign('='), Token::Text(file), ..]
                    if path == "path" =>
                {
                    path_attribute = Some(file.clone());
                }
                [Token::Ident(word), Token::Ident(name), Token::Sign(';'), ..] if word == "mod" => {
                    let (file, inner) = match path_attribute.take() {
                        Some(path) => {
                            let file = self.0[id].file.with_file_name(path);
                            let file = file.canonicalize().expect("the file exists");
                            (file.clone(), file.with_file_name(""))
                        }
                        None => (below.join(format!("{name}.rs")), below.join(name)),
                    };
                    if !name.ends_with("tests") {
                        let child = self.add_file(&file, inner, Some(id));
                        self.0[id].children.insert(name.clone(), child);
                    }
                }
                [Token::Ident(word), Token::Ident(name), Token::Sign('{'), ..] if word == "mod" => {
                    let child = self.add(&self.0[id].file.clone(), Some(id));
                    self.0[id].children.insert(name.clone(), child);
                    around.push((child, below.join(name), depth + 1));
                }
                // But not `use<…>` of a type.
                [Token::Ident(word), rest @ ..] if word == "use" && rest[0] != Token::Sign('<') => {
                    at += 1 + self.0[id].import(rest, &[]);
                    continue;
                }
                [Token::Ident(macro_rules), Token::Sign('!'), Token::Ident(name), ..]
                    if macro_rules == "macro_rules" =>
                {
                    self.0[id].items.insert(name.clone());
                }
                [Token::Ident(word), Token::Ident(name), ..] if depth == own_depth && is_item(word) => {
                    self.0[id].items.insert(name.clone());
                }
                [Token::Ident(_), Token::Path, ..] if at == 0 || tokens[at - 1] != Token::Path => {
                    let path: Vec<_> = rest
                        .chunks(2)
                        .map_while(|pair| Some((pair[0].ident()?.to_owned(), pair.get(1))))
                        .scan(true, |goes_on, (name, next)| {
                            std::mem::replace(goes_on, next == Some(&Token::Path)).then_some(name)
                        })
                        .collect();
                    self.0[id].paths.insert(path);
                }
                _ => {}
            }
            at += 1;
        }
    }
}

impl Module {
    /// Reads a tree of imports up to its `;`, `,` or `}`, and gives its length.
    fn import(&mut self, tokens: &[Token], prefix: &[String]) -> usize {
        let (mut path, mut at) = (prefix.to_vec(), 0);
        loop {
            match &tokens[at] {
                Token::Ident(word) if word == "as" => {
                    let alias = tokens[at + 1].ident().expect("a name after `as`");
                    self.imports.push((alias.to_owned(), path));
                    return at + 2;
                }
                Token::Ident(word) => path.push(word.clone()),
                Token::Sign('*') => {
                    self.globs.push(path);
                    return at + 1;
                }
                Token::Sign('{') => {
                    at += 1;
                    while tokens[at] != Token::Sign('}') {
                        at += self.import(&tokens[at..], &path);
                        at += usize::from(tokens[at] == Token::Sign(','));
                    }
                    return at + 1;
                }
                Token::Sign(',' | '}' | ';') => {
                    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
                        path.pop();
                    }
                    self.imports.push((path.last().expect("a name").clone(), path));
                    return at;
                }
                // Signs of macros, as in `use $path;`.
                Token::Path | Token::Sign(_) | Token::Text(_) => {}
            }
            at += 1;
        }
    }
}

fn is_item(word: &str) -> bool {
    ["fn", "struct", "enum", "trait", "type", "const", "static", "union"].contains(&word)
}

/// Whether `#[cfg(test)]` or `#[test]` stands here.
fn is_test(tokens: &[Token]) -> bool {
    let [Token::Sign('#'), Token::Sign('['), attribute @ ..] = tokens else { return false };
    match attribute {
        [name, Token::Sign('('), test, Token::Sign(')'), ..] => name.is("cfg") && test.is("test"),
        [name, Token::Sign(']'), ..] => name.is("test"),
        _ => false,
    }
}

/// The length of the item at the start: up to its `;`, or the end of its braces.
fn item_length(tokens: &[Token]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('{' | '(' | '[') => depth += 1,
            Token::Sign(sign @ ('}' | ')' | ']')) => {
                depth -= 1;
                if *sign == '}' && depth == 0 {
                    return at + 1;
                }
            }
            Token::Sign(';') if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}
