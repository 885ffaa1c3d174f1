//! `Query`: a SELECT of the user's own with the parameters `:from`, `:to`, `:after` and `:limit`.

use std::fmt::{self, Display};

/// A parameter of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// The earliest due time, or the earliest change.
    From,
    /// Before which time rows are due.
    To,
    /// The id of the last row of the page before.
    After,
    /// The most rows of the page.
    Limit,
}

impl Parameter {
    /// All parameters.
    pub(crate) const ALL: [Self; 4] = [Self::From, Self::To, Self::After, Self::Limit];

    /// Its name in a query.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::From => ":from",
            Self::To => ":to",
            Self::After => ":after",
            Self::Limit => ":limit",
        }
    }
}

impl Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A query whose parameters are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    /// As it was written.
    pub(crate) text: String,
    /// With `$1`, `$2` and so on in place of the names, for PostgreSQL.
    pub(crate) numbered: String,
    /// The parameters, by these numbers.
    pub(crate) parameters: Vec<Parameter>,
}

impl Query {
    /// Reads a query, which must have the `required` parameters.
    ///
    /// # Errors
    /// Which parameter is missing or unknown.
    pub(crate) fn parse(text: &str, required: &[Parameter]) -> Result<Self, String> {
        let (mut numbered, mut parameters, mut rest) = (String::with_capacity(text.len()), Vec::new(), text);
        while !rest.is_empty() {
            let skipped = not_a_parameter(rest);
            numbered.push_str(&rest[..skipped]);
            rest = &rest[skipped..];
            let Some(name) = parameter(rest) else { continue };
            let known = Parameter::ALL.into_iter().find(|known| known.name() == name);
            let known = known.ok_or_else(|| {
                format!("has the parameter {name}: the parameters are :from, :to, :after and :limit")
            })?;
            let number = parameters.iter().position(|parameter| *parameter == known).unwrap_or_else(|| {
                parameters.push(known);
                parameters.len() - 1
            });
            numbered.push_str(&format!("${}", number + 1));
            rest = &rest[name.len()..];
        }
        let missing: Vec<_> =
            required.iter().filter(|parameter| !parameters.contains(parameter)).map(|p| p.name()).collect();
        if !missing.is_empty() {
            return Err(format!("has no {}", missing.join(" and no ")));
        }
        Ok(Self { text: text.to_owned(), numbered, parameters })
    }
}

/// The parameter with which a text begins.
fn parameter(text: &str) -> Option<&str> {
    let name = text.strip_prefix(':')?;
    let length = name.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let is_name = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    is_name.then(|| &text[..=length])
}

/// How many bytes at the beginning of a text that is not empty are no parameter: a literal, a quoted name, a comment, a cast,
/// or what comes before any of these and before a parameter.
fn not_a_parameter(text: &str) -> usize {
    let until =
        |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    match text.as_bytes() {
        [b'\'', ..] => until("'", 1),
        [b'"', ..] => until("\"", 1),
        [b'-', b'-', ..] => until("\n", 2),
        [b'/', b'*', ..] => until("*/", 2),
        [b':', b':', ..] | [b':', b'=', ..] => 2,
        [b'$', ..] => dollar_quoted(text).unwrap_or(1),
        [b':', ..] if parameter(text).is_some() => 0,
        _ => {
            let first = text.chars().next().map_or(1, char::len_utf8);
            let next = text[first..].find(['\'', '"', '-', '/', ':', '$']);
            next.map_or(text.len(), |at| first + at)
        }
    }
}

/// The length of a literal such as `$$…$$` or `$tag$…$tag$`.
fn dollar_quoted(text: &str) -> Option<usize> {
    let end = text[1..].find('$')? + 2;
    let tag = &text[..end];
    let is_tag = tag[1..end - 1].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let close =
        text[end..].find(tag).filter(|_| is_tag && !tag[1..].starts_with(|c: char| c.is_ascii_digit()))?;
    Some(end + close + tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_numbers_and_the_same_name_the_same_number() {
        let query = Query::parse(
            "select id from o where due_at >= :from and due_at < :to and id > :after and :from < :to limit :limit",
            &Parameter::ALL,
        )
        .unwrap();
        assert_eq!(
            query.numbered,
            "select id from o where due_at >= $1 and due_at < $2 and id > $3 and $1 < $2 limit $4"
        );
        assert_eq!(query.parameters, Parameter::ALL);
    }

    #[test]
    fn what_only_looks_like_a_parameter_stays() {
        for text in [
            "select ':from', \"a:to\" -- :after\n",
            "select /* :limit */ now()::text, a[1:2], 'it''s :x', x := 1",
            "select $$ :from $$, $q$ :to $$ $q$, $1",
            "select 'open :from",
            "select é:",
        ] {
            let query = Query::parse(text, &[]).unwrap();
            assert_eq!((query.numbered.as_str(), query.parameters.len()), (text, 0));
        }
    }

    #[test]
    fn missing_and_unknown_parameters_are_named() {
        let error = Query::parse("select id from o where id > :after", &Parameter::ALL).unwrap_err();
        assert_eq!(error, "has no :from and no :to and no :limit");
        let error = Query::parse("select :form", &[]).unwrap_err();
        assert!(error.contains(":form") && error.contains(":from"), "{error}");
    }
}
