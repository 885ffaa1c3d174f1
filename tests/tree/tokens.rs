//! Rust source as tokens, without comments: as much of the language as finding imports needs.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// An identifier or a keyword; `r#type` is `type`.
    Ident(String),
    /// The text of a string literal, escapes unread.
    Text(String),
    /// `::`
    Path,
    /// Any other character that is not white space.
    Sign(char),
}

impl Token {
    pub(crate) fn ident(&self) -> Option<&str> {
        match self {
            Self::Ident(name) => Some(name),
            Self::Text(_) | Self::Path | Self::Sign(_) => None,
        }
    }

    pub(crate) fn is(&self, word: &str) -> bool {
        self.ident() == Some(word)
    }
}

/// The tokens of a file. Numbers, lifetimes and character literals are left out.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let (mut found, mut rest) = (Vec::new(), source);
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").expect("a comment ends") + 2
        } else if let Some((text, length)) = string(rest) {
            found.push(Token::Text(text.to_owned()));
            length
        } else if let Some(raw) = rest.strip_prefix("r#") {
            let length = raw.find(|c: char| !is_part(c)).unwrap_or(raw.len());
            found.push(Token::Ident(raw[..length].to_owned()));
            length + 2
        } else if first == '\'' || rest.starts_with("b'") {
            character(rest)
        } else if first.is_ascii_digit() {
            word
        } else if word > 0 {
            found.push(Token::Ident(rest[..word].to_owned()));
            word
        } else if rest.starts_with("::") {
            found.push(Token::Path);
            2
        } else {
            if !first.is_whitespace() {
                found.push(Token::Sign(first));
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    found
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The string literal at the start, of any kind: its text, and the length of the whole.
fn string(rest: &str) -> Option<(&str, usize)> {
    let unprefixed = rest.trim_start_matches(['b', 'c']);
    let prefix = rest.len() - unprefixed.len();
    if let Some(raw) = unprefixed.strip_prefix('r') {
        let text = raw.trim_start_matches('#');
        let hashes = raw.len() - text.len();
        let text = text.strip_prefix('"')?;
        let end = text.find(&format!("\"{}", "#".repeat(hashes))).expect("a raw string ends");
        return Some((&text[..end], prefix + 1 + hashes + 1 + end + 1 + hashes));
    }
    let text = unprefixed.strip_prefix('"')?;
    let mut escaped = false;
    let end = text.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    let end = end.expect("a string ends");
    Some((&text[..end], prefix + 1 + end + 1))
}

/// The length of the character literal or the lifetime at the start.
fn character(rest: &str) -> usize {
    let open = rest.find('\'').expect("it starts with one") + 1;
    let mut inside = rest[open..].chars();
    match (inside.next(), inside.next()) {
        (Some('\\'), Some(escaped)) => {
            let after = open + 1 + escaped.len_utf8();
            after + rest[after..].find('\'').expect("a character ends") + 1
        }
        (Some(one), Some('\'')) => open + one.len_utf8() + 1,
        _ => rest[open..].find(|c: char| !is_part(c)).map_or(rest.len(), |end| open + end),
    }
}
