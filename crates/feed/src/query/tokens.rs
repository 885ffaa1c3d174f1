//! Splits SQL into parameters and text, by the lexical rules of PostgreSQL and of SQLite: literals, quoted names,
//! comments, casts and slices are text, whatever is in them. Does not parse.

use super::Dialect;

/// A part of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Text(&'a str),
    /// A name behind a colon, with the colon.
    Parameter(&'a str),
}

/// The kind of a token, as far as it decides the meaning of a colon behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// White space and comments.
    Space,
    /// A literal, a number, a quoted name or a closing bracket: no value can follow.
    Operand,
    Name,
    Other,
}

/// An open bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bracket {
    Round,
    /// Of `json_object(` and `json_objectagg(`, where a colon stands between key and value.
    JsonObject,
    Square,
}

pub(super) fn tokens(dialect: Dialect, text: &str) -> impl Iterator<Item = Token<'_>> {
    let (mut rest, mut brackets, mut before) = (text, Vec::new(), (Kind::Other, ""));
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(name) = parameter(rest).filter(|_| begins_value(before, brackets.last().copied())) {
            rest = &rest[name.len()..];
            before = (Kind::Operand, name);
            return Some(Token::Parameter(name));
        }
        let (kind, length) = match dialect {
            Dialect::Postgres => postgres(rest),
            Dialect::Sqlite => sqlite(rest),
        };
        let (token, behind) = rest.split_at(length);
        rest = behind;
        match token {
            "(" if is_json_object(before.1) => brackets.push(Bracket::JsonObject),
            "(" => brackets.push(Bracket::Round),
            "[" => brackets.push(Bracket::Square),
            ")" | "]" => drop(brackets.pop()),
            _ => {}
        }
        if kind != Kind::Space {
            before = (kind, token);
        }
        Some(Token::Text(token))
    })
}

/// Whether a value can begin behind a token. If not, a colon is that of a slice, `a[1:2]`, or of an entry of
/// `json_object('a':1)`.
fn begins_value((kind, token): (Kind, &str), bracket: Option<Bracket>) -> bool {
    match kind {
        Kind::Operand => false,
        Kind::Name => match bracket {
            Some(Bracket::Square) => false,
            Some(Bracket::JsonObject) => token.eq_ignore_ascii_case("value"),
            Some(Bracket::Round) | None => true,
        },
        Kind::Space | Kind::Other => true,
    }
}

fn is_json_object(word: &str) -> bool {
    ["json_object", "json_objectagg"].iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// The parameter with which a text begins, with its colon; `None` if it does not begin with one.
fn parameter(text: &str) -> Option<&str> {
    let name = text.strip_prefix(':')?;
    let length = name.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let is_name = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    is_name.then(|| &text[..=length])
}

/// The kind and the length of the token of PostgreSQL with which a text begins.
fn postgres(text: &str) -> (Kind, usize) {
    if let Some(token) = common(text) {
        return token;
    }
    match text.as_bytes() {
        [b'/', b'*', ..] => (Kind::Space, nested_comment(text)),
        [b'$', ..] => (Kind::Operand, dollar_quoted(text).unwrap_or(1 + digits(&text[1..]))),
        [b'e' | b'E', b'\'', ..] => (Kind::Operand, 1 + escaped(&text[1..])),
        [first, ..] if begins_word(*first) => (Kind::Name, word(text)),
        _ => (Kind::Other, first_char(text)),
    }
}

/// The kind and the length of the token of SQLite with which a text begins.
fn sqlite(text: &str) -> (Kind, usize) {
    if let Some(token) = common(text) {
        return token;
    }
    match text.as_bytes() {
        [b'/', b'*', ..] => (Kind::Space, text[2..].find("*/").map_or(text.len(), |end| end + 4)),
        [b'`', ..] => (Kind::Operand, quoted(text, '`')),
        [b'[', ..] => (Kind::Operand, text.find(']').map_or(text.len(), |end| end + 1)),
        [first, ..] if begins_word(*first) => (Kind::Name, word(text)),
        _ => (Kind::Other, first_char(text)),
    }
}

/// The kind and the length of a token that both dialects have; `None` if the text does not begin with one.
fn common(text: &str) -> Option<(Kind, usize)> {
    Some(match text.as_bytes() {
        [b'\'', ..] => (Kind::Operand, quoted(text, '\'')),
        [b'"', ..] => (Kind::Operand, quoted(text, '"')),
        [b'-', b'-', ..] => (Kind::Space, text.find('\n').map_or(text.len(), |end| end + 1)),
        [b':', b':' | b'=', ..] => (Kind::Other, 2),
        [b')' | b']', ..] => (Kind::Operand, 1),
        [first, ..] if first.is_ascii_whitespace() => (Kind::Space, 1),
        [b'0'..=b'9', ..] => {
            let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"._".contains(b);
            (Kind::Operand, text.bytes().take_while(is_part).count())
        }
        _ => return None,
    })
}

/// The length of the quoted literal or name with which a text begins, with its quotes. A quote in it is written twice.
/// All of the text if the quotes are not closed.
fn quoted(text: &str, quote: char) -> usize {
    let mut from = 1;
    while let Some(end) = text[from..].find(quote) {
        from += end + 1;
        if !text[from..].starts_with(quote) {
            return from;
        }
        from += 1;
    }
    text.len()
}

/// The length of the quoted literal with which a text begins, in which a backslash escapes the next character. All of
/// the text if the quotes are not closed.
fn escaped(text: &str) -> usize {
    let mut from = 1;
    while let Some(end) = text[from..].find(['\'', '\\']) {
        from += end + 1;
        let is_backslash = text[..from].ends_with('\\');
        if !is_backslash && !text[from..].starts_with('\'') {
            return from;
        }
        from += text[from..].chars().next().map_or(0, char::len_utf8);
    }
    text.len()
}

/// The length of the comment with which a text begins, and which may contain others; all of the text if it has no end.
fn nested_comment(text: &str) -> usize {
    let (mut from, mut depth) = (2, 1_u32);
    while depth > 0 {
        let Some(at) = text[from..].find(['/', '*']) else { return text.len() };
        from += at;
        match &text.as_bytes()[from..] {
            [b'/', b'*', ..] => depth += 1,
            [b'*', b'/', ..] => depth -= 1,
            _ => {
                from += 1;
                continue;
            }
        }
        from += 2;
    }
    from
}

/// The length of a literal such as `$$…$$` or `$tag$…$tag$`, all of the text if it has no end; `None` if the text does
/// not begin with one.
fn dollar_quoted(text: &str) -> Option<usize> {
    let end = text[1..].find('$')? + 2;
    let tag = &text[..end];
    let inner = &tag.as_bytes()[1..end - 1];
    let is_tag =
        inner.iter().all(|b| is_word(*b) && *b != b'$') && inner.first().is_none_or(|b| begins_word(*b));
    is_tag.then(|| text[end..].find(tag).map_or(text.len(), |at| end + at + tag.len()))
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn word(text: &str) -> usize {
    text.bytes().take_while(|b| is_word(*b)).count()
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

fn is_word(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit() || byte == b'$'
}

fn first_char(text: &str) -> usize {
    text.chars().next().map_or(1, char::len_utf8)
}
