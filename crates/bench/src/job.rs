//! The measured job: body 217 B, URL 49 B, id 22 B, a topic of 10 characters. And the bodies of realistic jobs.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::LazyLock;

use ringback_core::clock::{Clock as _, SystemClock};
use ringback_core::job::NewJob;
use ringback_wire::{Defaults, parse_job};
use serde_json::{Value, json};

/// The URL of jobs that are never delivered.
pub(crate) const URL: &str = "https://merchant.example/pppppppppppppppppppppppp";
/// The characters that fill the body up to its size.
const FILLER: usize = 217 - 56;

/// The measured job with a number. The fields of `more` are added, or replace those of the same name.
pub(crate) fn job(number: usize, url: &str, more: &Value) -> Value {
    let mut job = json!({
        "topic": "pay.notify",
        "id": format!("order-{number:016}"),
        "url": url,
        "body": { "order": format!("{number:016}"), "status": "PAID", "filler": filler() },
    });
    if let (Some(job), Some(more)) = (job.as_object_mut(), more.as_object()) {
        job.extend(more.clone());
    }
    job
}

/// The text that fills the body up to its size.
pub(crate) fn filler() -> String {
    "x".repeat(FILLER)
}

/// 20 bodies of payments, orders, refunds and subscriptions, 0.2 to 4 KB.
static BODIES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let lines = include_str!("../bodies.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).expect("a body is JSON")).collect()
});

/// The body of a realistic job with a number. Its ids, times and amounts are those of no other job.
pub(crate) fn realistic_body(number: usize) -> Value {
    let mut body = BODIES[number % BODIES.len()].clone();
    vary(&mut body, number);
    body
}

/// Replaces each word with a digit in the values: by another of the same form, and the same word by the same one.
fn vary(value: &mut Value, number: usize) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(old) => {
            let new = varied(&old.to_string(), number).parse().expect("it has the form of a number");
            *old = new;
        }
        Value::String(text) => *text = varied(text, number),
        Value::Array(values) => values.iter_mut().for_each(|value| vary(value, number)),
        Value::Object(fields) => fields.values_mut().for_each(|value| vary(value, number)),
    }
}

fn varied(text: &str, number: usize) -> String {
    let ends = |c: char| !c.is_ascii_alphanumeric();
    let parts = text.split_inclusive(ends).map(|part| {
        let word = part.trim_end_matches(ends);
        varied_word(word, number) + &part[word.len()..]
    });
    parts.collect()
}

fn varied_word(word: &str, number: usize) -> String {
    if !word.bytes().any(|byte| byte.is_ascii_digit()) {
        return word.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    (word, number).hash(&mut hasher);
    let mut random = hasher.finish();
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    let is_hex = !is_number && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let characters = word.bytes().enumerate().map(|(at, byte)| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (first, count) = match byte {
            _ if is_hex => return char::from(b"0123456789abcdef"[(random >> 60) as usize]),
            b'0'..=b'9' if is_number && at == 0 && word.len() > 1 => (b'1', 9),
            b'0'..=b'9' => (b'0', 10),
            b'a'..=b'z' => (b'a', 26),
            _ => (b'A', 26),
        };
        char::from(first + ((random >> 33) % count) as u8)
    });
    characters.collect()
}

pub(crate) fn parse(job: &Value) -> NewJob {
    let defaults = Defaults {
        now: SystemClock.now(),
        make_id: &mut |_: &_| unreachable!("every job has an id"),
        make_token: &mut || unreachable!("no job changes another"),
        trace: None,
        tenant: None,
    };
    parse_job(job.to_string().as_bytes(), defaults).expect("the measured job is valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_job_has_the_measured_sizes() {
        let job = job(7, URL, &json!({}));
        assert_eq!(job["url"].as_str().map(str::len), Some(49));
        assert_eq!(job["topic"].as_str().map(str::len), Some(10));
        assert_eq!(job["id"].as_str().map(str::len), Some(22));
        assert_eq!(job["body"].to_string().len(), 217);
    }

    #[test]
    fn a_realistic_body_has_its_size_and_form_and_words_of_its_own() {
        let bodies: std::collections::BTreeSet<_> = (0..400).map(|n| realistic_body(n).to_string()).collect();
        assert_eq!((bodies.len(), BODIES.len()), (400, 20));
        assert!(bodies.iter().all(|body| (200..=4096).contains(&body.len())));
        let text = "ord_8Fk29 7c9e-77 0.97 EUR ord_8Fk29";
        let [one, two] = [1, 2].map(|number| varied(text, number));
        assert!(one != two && one.len() == text.len() && one[..9] == one[27..] && &one[23..26] == "EUR");
    }
}
