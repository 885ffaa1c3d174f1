//! Builds the SQL query for a page of ended jobs. PostgreSQL and SQLite have the same tables; where their SQL differs,
//! a [`Dialect`] says how.

use std::fmt::Write as _;

use ringback_archive::history::{Cursor, HistoryFilter, HistoryRequest, LastOf, Order};

/// The columns of the key of an ended job except the tenant, by which a page is sorted.
const RANK: [&str; 6] = ["finished_at", "topic", "id", "generation", "attempts", "state"];

/// How a database writes SQL.
pub(crate) struct Dialect {
    /// The character before the number of an argument.
    pub(crate) mark: char,
    /// The prefix of a column that keeps the planner from its index; empty if there is no need.
    pub(crate) no_index: &'static str,
    /// Expressions for a time from ms, and for ms from a column with a time.
    pub(crate) time: fn(&str) -> String,
    pub(crate) ms: fn(&str) -> String,
    /// The expression for the text of a column with JSON.
    pub(crate) json: fn(&str) -> String,
    /// The condition that a row of a table has a tag: the table, the arguments with the tenant and the tag.
    pub(crate) has_tag: fn(&str, &str, &str) -> String,
}

/// An argument of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    Text(String),
    Number(i64),
}

/// A statement and its arguments.
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) arguments: Vec<Argument>,
}

/// Builds the statement for a page. Its columns are those of an [`EndedJobRow`](ringback_archive::EndedJobRow), in the
/// order in which both databases read them.
pub(crate) fn select(dialect: &Dialect, ask: &HistoryRequest) -> Statement {
    let mut building = Building { dialect, arguments: vec![Argument::Text(ask.filter.tenant.clone())] };
    let mut condition = building.filter(&ask.filter);
    if let Some(last_of) = ask.last_of {
        condition = format!("{condition} and {}", building.is_last(last_of, &ask.filter));
    }
    let (than, direction) = match ask.order {
        Order::Newest => ('<', " desc"),
        Order::Oldest => ('>', ""),
    };
    if let Some(place) = &ask.after {
        condition = format!("{condition} and {}", building.behind(place, than));
    }
    let order = |of: &str| RANK.map(|column| format!("{of}.{column}{direction}")).join(", ");
    let limit = building.number(i64::try_from(ask.limit).unwrap_or(i64::MAX));
    let (ms, json) = (dialect.ms, dialect.json);
    let log = if ask.with_attempts { json("e.attempt_log") } else { "'[]'".to_owned() };
    let (request, body, join) = if ask.with_requests {
        let same = RANK.map(|key| format!("b.{key} = e.{key}")).join(" and ");
        let join = format!("left join ringback_bodies b on b.tenant = e.tenant and {same}");
        (json("e.request"), "b.content_type, b.body", join)
    } else {
        ("cast(null as text)".to_owned(), "cast(null as text), cast(null as text)", String::new())
    };
    let text = format!(
        "select e.tenant, e.topic, e.id, e.generation, e.attempts, e.state, {finished}, {first_due}, {due}, e.failures, e.reason, e.url, \
        e.host, {last}, e.last_status, e.last_error, e.last_duration_ms, e.tags, e.attempts_complete, {log}, {request}, {body} \
        from (select * from ringback_ended_jobs m where {condition} order by {inner} limit {limit}) e {join} order by {outer}",
        finished = ms("e.finished_at"),
        first_due = ms("e.first_due_at"),
        due = ms("e.due_at"),
        last = ms("e.last_at"),
        inner = order("m"),
        outer = order("e"),
    );
    Statement { text, arguments: building.arguments }
}

/// A statement that is being built. Its first argument is the tenant.
struct Building<'a> {
    dialect: &'a Dialect,
    arguments: Vec<Argument>,
}

impl Building<'_> {
    /// The name of the argument with the tenant.
    fn tenant(&self) -> String {
        format!("{}1", self.dialect.mark)
    }

    /// Adds an argument, and returns its name in the text.
    fn argument(&mut self, argument: Argument) -> String {
        self.arguments.push(argument);
        format!("{}{}", self.dialect.mark, self.arguments.len())
    }

    fn text(&mut self, text: &str) -> String {
        self.argument(Argument::Text(text.to_owned()))
    }

    fn number(&mut self, number: i64) -> String {
        let name = self.argument(Argument::Number(number));
        format!("cast({name} as bigint)")
    }

    /// Adds a time in ms, and returns the expression for it.
    fn time(&mut self, ms: i64) -> String {
        let number = self.number(ms);
        (self.dialect.time)(&number)
    }

    /// The conditions of a filter on the rows `m` of ended jobs, its tenant and topics included.
    fn filter(&mut self, filter: &HistoryFilter) -> String {
        // The indexes by tenant and time give the order of a page, so a database without statistics takes them although
        // others lead to few rows.
        let is_one = filter.id.is_some() || filter.tag.is_some();
        let is_few = filter.topics.is_empty() && (filter.reason.is_some() || filter.host.is_some());
        let no_index = |is_wanted: bool| if is_wanted { self.dialect.no_index } else { "" };
        let (of_tenant, of_topic) = (no_index(is_one || is_few), no_index(is_one));
        let mut text = format!("{of_tenant}m.tenant = {}", self.tenant());
        if !filter.topics.is_empty() {
            let topics: Vec<_> = filter.topics.iter().map(|topic| self.text(topic)).collect();
            let _ = write!(text, " and {of_topic}m.topic in ({})", topics.join(", "));
        }
        if !filter.not_topics.is_empty() {
            let topics: Vec<_> = filter.not_topics.iter().map(|topic| self.text(topic)).collect();
            let _ = write!(text, " and m.topic not in ({})", topics.join(", "));
        }
        text + &self.parts(filter, "m")
    }

    /// The conditions of a filter on the rows of a table with this name, apart from tenant and topic.
    fn parts(&mut self, filter: &HistoryFilter, of: &str) -> String {
        let mut text = String::new();
        let mut and = |condition: String| {
            let _ = write!(text, " and {condition}");
        };
        for (column, value) in
            [("id", &filter.id), ("state", &filter.state), ("reason", &filter.reason), ("host", &filter.host)]
        {
            if let Some(value) = value {
                and(format!("{of}.{column} = {}", self.text(value)));
            }
        }
        if let Some(tag) = &filter.tag {
            let tag = self.text(tag);
            and((self.dialect.has_tag)(of, &self.tenant(), &tag));
        }
        if let Some(after) = filter.after {
            and(format!("{of}.finished_at >= {}", self.time(after)));
        }
        if let Some(before) = filter.before {
            and(format!("{of}.finished_at < {}", self.time(before)));
        }
        text
    }

    /// The condition that no later end of the same generation, or of the same id, matches the filter or is done or
    /// cancelled.
    fn is_last(&mut self, of: LastOf, filter: &HistoryFilter) -> String {
        let parts = self.parts(filter, "later");
        let generation = match of {
            LastOf::Generation => " and later.generation = m.generation",
            LastOf::Id => "",
        };
        let rank = |of: &str| {
            ["generation", "finished_at", "attempts", "state"]
                .map(|column| format!("{of}.{column}"))
                .join(", ")
        };
        format!(
            "not exists (select 1 from ringback_ended_jobs later where later.tenant = m.tenant and later.topic = m.topic \
            and later.id = m.id{generation} and ({}) > ({}) and (later.state in ('done', 'cancelled') or (1 = 1{parts})))",
            rank("later"),
            rank("m")
        )
    }

    /// The condition that ended jobs follow a place in the order of the page. Its first part makes the index usable.
    fn behind(&mut self, place: &Cursor, than: char) -> String {
        let Cursor { finished_at, topic, id, generation, attempts, state } = place;
        let time = self.time(*finished_at);
        let parts = [
            time.clone(),
            self.text(topic),
            self.text(id),
            self.number(*generation),
            self.number(i64::from(*attempts)),
            self.text(state),
        ];
        let rank = RANK.map(|column| format!("m.{column}")).join(", ");
        format!("m.finished_at {than}= {time} and ({rank}) {than} ({})", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIALECT: Dialect = Dialect {
        mark: '$',
        no_index: "+",
        time: |ms| format!("time({ms})"),
        ms: |column| format!("ms({column})"),
        json: str::to_owned,
        has_tag: |of, tenant, tag| format!("has({of}, {tenant}, {tag})"),
    };

    #[test]
    fn each_argument_is_named_where_it_belongs() {
        let filter = HistoryFilter {
            tenant: "acme".to_owned(),
            topics: vec!["a".to_owned(), "b".to_owned()],
            not_topics: vec!["c".to_owned()],
            tag: Some("customer:42".to_owned()),
            before: Some(7),
            ..HistoryFilter::default()
        };
        let ask = HistoryRequest { filter, limit: 3, last_of: Some(LastOf::Id), ..HistoryRequest::default() };
        let Statement { text, arguments } = select(&DIALECT, &ask);
        let conditions = "+m.tenant = $1 and +m.topic in ($2, $3) and m.topic not in ($4) and has(m, $1, $5) \
            and m.finished_at < time(cast($6 as bigint))";
        let later = "or (1 = 1 and has(later, $1, $7) and later.finished_at < time(cast($8 as bigint)))";
        assert!(text.contains(conditions) && text.contains(later), "{text}");
        assert!(text.contains("limit cast($9 as bigint)"), "{text}");
        assert_eq!((arguments.len(), &arguments[8]), (9, &Argument::Number(3)));
        let text = |text: &str| Argument::Text(text.to_owned());
        assert_eq!(
            [&arguments[0], &arguments[3], &arguments[4]],
            [&text("acme"), &text("c"), &text("customer:42")]
        );
        assert_eq!(arguments[5], Argument::Number(7));
    }

    #[test]
    fn a_page_goes_on_behind_a_place_in_either_order() {
        let place = Cursor {
            finished_at: 5,
            topic: "t".to_owned(),
            id: "i".to_owned(),
            generation: 3,
            attempts: 1,
            state: "done".to_owned(),
        };
        for (order, than, direction) in [(Order::Newest, '<', " desc"), (Order::Oldest, '>', "")] {
            let ask =
                HistoryRequest { order, after: Some(place.clone()), limit: 1, ..HistoryRequest::default() };
            let Statement { text, .. } = select(&DIALECT, &ask);
            assert!(text.contains(&format!("m.finished_at {than}= time(")), "{text}");
            assert!(text.contains(&format!("m.attempts, m.state) {than} (")), "{text}");
            assert!(text.contains(&format!("m.state{direction} limit")), "{text}");
        }
    }
}
