//! `Query`: a SELECT of the user's own with the parameters `:from`, `:to`, `:after` and `:limit`. Finds and checks the
//! parameters, by `tokens`; all other text is passed on unchanged.

mod tokens;

use self::tokens::{Token, tokens};

/// Whose SQL a query is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Postgres,
    Sqlite,
}

/// A parameter of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase", prefix = ":")]
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

/// A query whose parameters are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    /// As it was written; for PostgreSQL with `$1`, `$2` and so on in place of the names.
    pub(crate) sql: String,
    /// The parameters, by these numbers.
    pub(crate) parameters: Vec<Parameter>,
}

impl Query {
    /// Finds the parameters of a query, which must have the `required` ones.
    ///
    /// # Errors
    /// A text that names the parameters that are missing, or the first unknown one.
    pub(crate) fn parse(dialect: Dialect, text: &str, required: &[Parameter]) -> Result<Self, String> {
        let (mut sql, mut parameters) = (String::with_capacity(text.len()), Vec::new());
        for token in tokens(dialect, text) {
            let name = match token {
                Token::Text(text) => {
                    sql.push_str(text);
                    continue;
                }
                Token::Parameter(name) => name,
            };
            let known: Option<Parameter> = name.strip_prefix(':').and_then(|name| name.parse().ok());
            let known = known.ok_or_else(|| {
                format!("has the parameter {name}: the parameters are :from, :to, :after and :limit")
            })?;
            let number = parameters.iter().position(|parameter| *parameter == known).unwrap_or_else(|| {
                parameters.push(known);
                parameters.len() - 1
            });
            match dialect {
                Dialect::Postgres => sql.push_str(&format!("${}", number + 1)),
                // It binds names itself.
                Dialect::Sqlite => sql.push_str(name),
            }
        }
        let missing: Vec<_> =
            required.iter().filter(|parameter| !parameters.contains(parameter)).map(<&str>::from).collect();
        if !missing.is_empty() {
            return Err(format!("has no {}", missing.join(" and no ")));
        }
        Ok(Self { sql, parameters })
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;

    #[test]
    fn names_become_numbers_and_the_same_name_the_same_number() {
        let text = "select id from o where due_at >= :from and due_at < :to and id > :after and :from < :to limit :limit";
        let query = Query::parse(Dialect::Postgres, text, Parameter::VARIANTS).unwrap();
        assert_eq!(
            query.sql,
            "select id from o where due_at >= $1 and due_at < $2 and id > $3 and $1 < $2 limit $4"
        );
        assert_eq!(query.parameters, Parameter::VARIANTS);
        let query = Query::parse(Dialect::Sqlite, text, Parameter::VARIANTS).unwrap();
        assert_eq!((query.sql.as_str(), query.parameters.len()), (text, 4));
    }

    #[test]
    fn what_only_looks_like_a_parameter_stays() {
        const BOTH: [Dialect; 2] = [Dialect::Postgres, Dialect::Sqlite];
        for (text, dialects) in [
            ("select ':from', 'it''s :x' -- :after\n", &BOTH[..]),
            ("select \"a:to\", \"q\"\"r:x\" /* :limit */ from o", &BOTH),
            ("select 'open :from", &BOTH),
            ("select 1 /* open :from", &BOTH),
            ("select j -> 'a', j ->> '$.b:c' from o", &BOTH),
            ("select é:", &BOTH),
            ("select /* a /* nested */ :from */ 1", &BOTH[..1]),
            ("select now()::text, x := 1, a[1:2], a[lo:hi], a[(1):\"to\"], a[f(1):after]", &BOTH[..1]),
            ("select e'it\\'s :from', E'\\\\', U&'d:to', b'1', 'c:\\'", &BOTH[..1]),
            ("select $$ :from $$, $q$ :to $$ $q$, $1, a$b$c, 1 as x$", &BOTH[..1]),
            ("select json_object('k':after, name:v, 'n': 1), j @? '$.a', j #>> '{a:b}'", &BOTH[..1]),
            ("select [a:from], `b:to`, \"c\" from [t:x] /* not /* nested */", &BOTH[1..]),
        ] {
            for dialect in dialects {
                let query = Query::parse(*dialect, text, &[]).unwrap_or_else(|why| panic!("{text}: {why}"));
                assert_eq!((query.sql.as_str(), query.parameters.len()), (text, 0), "{dialect:?}");
            }
        }
    }

    #[test]
    fn parameters_are_found_beside_all_of_that() {
        for (text, expected) in [
            ("select e'\\'' || ':x' where a = :after", "select e'\\'' || ':x' where a = $1"),
            (
                "select :from::timestamptz, (:to)::text, a[:limit]",
                "select $1::timestamptz, ($2)::text, a[$3]",
            ),
            ("where x in (:after,:limit)/*:x*/and y>:from--:x", "where x in ($1,$2)/*:x*/and y>$3--:x"),
            (
                "select json_object(key 'a' value :after), $$'$$, :to",
                "select json_object(key 'a' value $1), $$'$$, $2",
            ),
            ("select a[1:2] || array[:after] offset:limit", "select a[1:2] || array[$1] offset$2"),
        ] {
            assert_eq!(Query::parse(Dialect::Postgres, text, &[]).unwrap().sql, expected);
        }
        let text = "select [it's] from o where a = :after and b = `:x`";
        assert_eq!(Query::parse(Dialect::Sqlite, text, &[]).unwrap().parameters, [Parameter::After]);
        let text = "select /* a /* */ :from, 'c:\\', :to";
        assert_eq!(Query::parse(Dialect::Sqlite, text, &[]).unwrap().parameters.len(), 2);
    }

    #[test]
    fn missing_and_unknown_parameters_are_named() {
        let parse = |text, required| Query::parse(Dialect::Postgres, text, required).unwrap_err();
        let error = parse("select id from o where id > :after", Parameter::VARIANTS);
        assert_eq!(error, "has no :from and no :to and no :limit");
        let error = parse("select :form", &[]);
        assert!(error.contains(":form") && error.contains(":from"), "{error}");
    }
}
