//! A history as JSON lines that tests search and change.

use serde_json::{Map, Value, json};

/// The lines of a history.
#[derive(Clone)]
pub(super) struct Lines(Vec<Value>);

impl Lines {
    pub(super) fn read(text: &[u8]) -> Self {
        let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        Self(lines.map(|line| serde_json::from_slice(line).expect("a line is JSON")).collect())
    }

    pub(super) fn text(&self) -> Vec<u8> {
        self.0.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
    }

    fn tag(&self, line: usize) -> &str {
        self.fields_of(line).0
    }

    fn fields_of(&self, line: usize) -> (&str, &Map<String, Value>) {
        let (tag, fields) = self.0[line].as_object().and_then(|line| line.iter().next()).expect("a member");
        (tag, fields.as_object().expect("an object"))
    }

    fn fields(&mut self, line: usize) -> &mut Map<String, Value> {
        let line = self.0[line].as_object_mut().and_then(|line| line.values_mut().next());
        line.and_then(Value::as_object_mut).expect("an object")
    }

    /// The indexes of the lines with a tag for whose fields `holds` is true.
    pub(super) fn all(&self, tag: &str, holds: impl Fn(&Map<String, Value>) -> bool) -> Vec<usize> {
        let fits = |line: &usize| {
            let (this, fields) = self.fields_of(*line);
            this == tag && holds(fields)
        };
        (0..self.0.len()).filter(fits).collect()
    }

    pub(super) fn with_tag(&self, tag: &str) -> Vec<usize> {
        self.all(tag, |_| true)
    }

    pub(super) fn of(&self, tag: &str, job: &str) -> Vec<usize> {
        self.all(tag, |fields| fields.get("job").is_some_and(|name| name == job))
    }

    pub(super) fn jobs(&self, kind: &str) -> Vec<String> {
        let part = format!("/{kind}-");
        let name = |line: usize| self.fields_of(line).1.get("job").and_then(Value::as_str).map(str::to_owned);
        let mut names: Vec<_> =
            (0..self.0.len()).filter_map(name).filter(|name| name.contains(&part)).collect();
        names.sort_unstable();
        names.dedup();
        assert!(!names.is_empty(), "there are jobs of the kind {kind}");
        names
    }

    pub(super) fn job(&self, kind: &str) -> String {
        self.jobs(kind).swap_remove(0)
    }

    /// The index of the line with the outcome of a call or the end of a delivery.
    pub(super) fn answer(&self, line: usize) -> usize {
        let key = if self.tag(line) == "arrive" { "d" } else { "n" };
        let number = &self.fields_of(line).1[key];
        let is_answer = |tag: &str| ["ok", "fail", "info", "respond"].contains(&tag);
        let fits = |other: &usize| {
            let (tag, fields) = self.fields_of(*other);
            is_answer(tag) && fields.get(key) == Some(number)
        };
        (0..self.0.len()).find(fits).expect("there is an answer")
    }

    pub(super) fn number(&self, line: usize, field: &str) -> u64 {
        self.fields_of(line).1[field].as_u64().expect("a number")
    }

    pub(super) fn value(&self, line: usize, field: &str) -> Value {
        self.fields_of(line).1.get(field).cloned().unwrap_or_default()
    }

    pub(super) fn set(&mut self, line: usize, field: &str, value: impl Into<Value>) {
        self.fields(line).insert(field.to_owned(), value.into());
    }

    pub(super) fn unset(&mut self, line: usize, field: &str) {
        self.fields(line).remove(field).expect("it was set");
    }

    pub(super) fn shift(&mut self, line: usize, field: &str, by: i64) {
        let value = self.number(line, field).checked_add_signed(by).expect("it stays a time");
        self.set(line, field, value);
    }

    /// Moves a delivery, its end and its due time by `by` ms.
    pub(super) fn shift_delivery(&mut self, arrive: usize, by: i64) {
        let respond = self.answer(arrive);
        self.shift(arrive, "t", by * 1_000);
        self.shift(respond, "t", by * 1_000);
        self.shift(arrive, "due", by);
    }

    /// Replaces a line.
    pub(super) fn replace(&mut self, line: usize, tag: &str, fields: &Value) {
        self.0[line] = json!({ tag: fields });
    }

    pub(super) fn add(&mut self, tag: &str, fields: &Value) -> usize {
        self.0.push(json!({ tag: fields }));
        self.0.len() - 1
    }

    pub(super) fn copy(&mut self, line: usize) -> usize {
        self.0.push(self.0[line].clone());
        self.0.len() - 1
    }

    pub(super) fn drop(&mut self, mut lines: Vec<usize>) {
        lines.sort_unstable();
        for line in lines.into_iter().rev() {
            self.0.remove(line);
        }
    }

    /// Removes deliveries with their ends, and subtracts them from the counters.
    pub(super) fn drop_deliveries(&mut self, arrives: &[usize]) {
        let responds: Vec<_> = arrives.iter().map(|line| self.answer(*line)).collect();
        for respond in &responds {
            self.meter("ringback_notifier_lateness_seconds_count", -1);
            if self.number(*respond, "status") == 200 {
                self.meter("ringback_notifier_attempts_total", -1);
            }
        }
        self.drop([arrives.to_vec(), responds].concat());
    }

    /// A number that no call and no delivery has. It changes only when the number of lines does.
    pub(super) fn fresh(&self) -> u64 {
        1_000_000_000 + self.0.len() as u64
    }

    /// The time in ms that the store's clock shows at `t`, rounded down so that it is not in the future.
    pub(super) fn store(&self, t: u64) -> u64 {
        let wall = self.number(self.with_tag("start")[0], "wall");
        let ahead = self.number(self.with_tag("clock")[0], "ahead");
        (wall + ahead + t) / 1_000
    }

    /// The time `t` at which the store's clock shows `due`.
    pub(super) fn host(&self, due: u64) -> u64 {
        due * 1_000 - self.store(0) * 1_000
    }

    /// Adds a delivery of a submitted job, with its end and its counters. Returns the index of the arrival.
    pub(super) fn deliver(&mut self, job: &str, attempt: u64, t: u64, status: u16) -> usize {
        let submit = self.of("submit", job)[0];
        let [url, body, headers] = ["url", "body", "headers"].map(|field| self.value(submit, field));
        let (d, due) = (self.fresh(), self.store(t) - 1);
        let webhook = format!("msg_{}", job.replace('/', "_"));
        let arrive = self.add(
            "arrive",
            &json!({
                "t": t, "d": d, "job": job, "attempt": attempt, "due": due, "webhook": webhook,
                "url": url, "body": body, "headers": headers,
            }),
        );
        self.add("respond", &json!({ "t": t + 500, "d": d, "status": status, "cut": status == 0 }));
        self.meter("ringback_notifier_lateness_seconds_count", 1);
        if status == 200 {
            self.meter("ringback_notifier_attempts_total", 1);
        }
        arrive
    }

    /// Adds `by` to a counter. Does nothing if the history has no such counter.
    pub(super) fn meter(&mut self, name: &str, by: i64) {
        for metric in self.all("metric", |fields| fields["name"] == name) {
            self.shift(metric, "value", by);
        }
    }

    /// Adds `by` to a count of the ledger.
    pub(super) fn count(&mut self, state: &str, by: i64) {
        let ledger = self.with_tag("ledger")[0];
        self.shift(ledger, state, by);
    }

    pub(super) fn move_to_end(&mut self, tags: &[&str]) {
        let is_moved = |line: &Value| {
            let tag = line.as_object().and_then(|line| line.keys().next());
            tag.is_some_and(|tag| tags.contains(&tag.as_str()))
        };
        self.0.sort_by_key(is_moved);
    }
}
