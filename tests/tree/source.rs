//! Parses Rust source with `syn` and `proc_macro2`: files, tokens, names and test attributes.

use std::path::Path;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::{Attribute, File, Item};

use crate::files::read;

pub(crate) fn parse(path: &Path) -> File {
    syn::parse_file(&read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The tokens of a file, without comments. Panics if the file cannot be tokenized.
pub(crate) fn tokens(path: &Path) -> TokenStream {
    read(path).parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Calls `visit` for each token, also for those inside groups.
pub(crate) fn each(tokens: TokenStream, visit: &mut impl FnMut(&TokenTree)) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => each(group.stream(), visit),
            token => visit(&token),
        }
    }
}

/// The text of an identifier, without `r#`.
pub(crate) fn text(ident: &Ident) -> String {
    ident.unraw().to_string()
}

pub(crate) fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(text(ident))
}

/// Whether an attribute is `#[cfg(test)]` or `#[test]`.
pub(crate) fn is_test(attribute: &Attribute) -> bool {
    let is_path = |name| attribute.path().is_ident(name);
    is_path("test") || (is_path("cfg") && attribute.parse_args::<Ident>().is_ok_and(|word| word == "test"))
}
