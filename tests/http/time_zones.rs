//! Due times in time zones: local times with `time_zone`, and annotations of RFC 9557, in every field that has a time.

use crate::prelude::*;

/// Times, each with the due time that it means.
fn right() -> Vec<(Value, &'static str)> {
    let berlin = |at: &str| json!({"at": at, "time_zone": "Europe/Berlin"});
    vec![
        (berlin("2030-01-23T09:00"), "2030-01-23T08:00:00.000Z"),
        (berlin("2030-07-23T09:00:00.0001"), "2030-07-23T07:00:00.001Z"),
        (json!({"at": "2030-07-23T09:00", "time_zone": "america/new_york"}), "2030-07-23T13:00:00.000Z"),
        // Clocks are set forward at 2, and back at 3.
        (berlin("2030-03-31T02:30"), "2030-03-31T01:30:00.000Z"),
        (berlin("2030-10-27T02:30"), "2030-10-27T00:30:00.000Z"),
        (berlin("2030-10-27T02:30:00+01:00"), "2030-10-27T01:30:00.000Z"),
        (berlin("2030-07-23T09:00:00+02:00[Europe/Berlin]"), "2030-07-23T07:00:00.000Z"),
        (json!({"at": "2030-07-23T09:00:00+02:00[!Europe/Berlin]"}), "2030-07-23T07:00:00.000Z"),
        (json!({"at": "2030-07-23T07:00:00Z[Europe/Berlin][u-ca=hebrew]"}), "2030-07-23T07:00:00.000Z"),
        (json!({"at": "2030-07-23T09:00[Europe/Berlin]"}), "2030-07-23T07:00:00.000Z"),
        (json!({"at": "2030-12-31T23:59:59Z", "time_zone": null}), "2030-12-31T23:59:59.000Z"),
    ]
}

/// Times that are refused, each with the wrong field and a part of its detail.
fn wrong() -> Vec<(Value, &'static str, &'static str)> {
    let berlin = |at: &str| json!({"at": at, "time_zone": "Europe/Berlin"});
    vec![
        (json!({"at": "2030-07-23T09:00"}), "at", "a local time without an offset or a time zone"),
        (
            json!({"at": "2030-07-23T09:00:00+01:00[Europe/Berlin]"}),
            "at",
            "Europe/Berlin is at +02:00 then, not at +01:00",
        ),
        (berlin("2030-07-23T09:00:00+01:00"), "at", "Europe/Berlin is at +02:00 then, not at +01:00"),
        (berlin("2030-03-31T02:30:00+01:00"), "at", "there is no such time in Europe/Berlin"),
        (
            berlin("2030-07-23T09:00:00+02:00[Europe/Paris]"),
            "at",
            "its annotation is not the time zone Europe/Berlin",
        ),
        (
            json!({"at": "2030-07-23T09:00:00Z[!Mars/Phobos]"}),
            "at",
            "\"Mars/Phobos\" is not a known time zone",
        ),
        (
            json!({"at": "2030-07-23T09:00:00Z[Mars/Phobos]"}),
            "at",
            "\"Mars/Phobos\" is not a known time zone",
        ),
        (json!({"at": "2030-07-23T09:00:00Z[!u-ca=hebrew]"}), "at", "not a time zone by RFC 9557"),
        (json!({"at": "2030-07-23T09:00:00Z[Europe/Berlin"}), "at", "not a time zone by RFC 9557"),
        (berlin("2030-07-23"), "at", "not RFC 3339"),
        (berlin("2099-07-23T09:00"), "at", "too far ahead"),
        (
            json!({"at": "2030-07-23T09:00", "time_zone": "Mars/Phobos"}),
            "time_zone",
            "is not a known time zone",
        ),
        (json!({"at": "2030-07-23T09:00", "time_zone": "CEST"}), "time_zone", "is not a known time zone"),
        (json!({"at": "2030-07-23T09:00", "time_zone": 1}), "time_zone", "is not a known time zone"),
        (json!({"at": "2030-07-23T09:00:00Z", "time_zone": ""}), "time_zone", "is not a known time zone"),
        (json!({"delay": "1h", "time_zone": "Europe/Berlin"}), "time_zone", "given without at"),
    ]
}

fn named(id: &str, when: &Value) -> Value {
    with_all(json!({"topic": TOPIC, "id": id, "url": "http://127.0.0.1:9/"}), when)
}

/// The detail of a problem that names only this field.
fn only(problem: &Value, field: &str) -> String {
    let errors = problem["errors"].as_array().unwrap_or_else(|| panic!("no errors in {problem}"));
    assert_eq!((errors.len(), &errors[0]["field"]), (1, &json!(field)), "{problem}");
    assert_ne!(errors[0]["allowed"], "", "{problem}");
    errors[0]["detail"].as_str().expect("a detail").to_owned()
}

#[tokio::test]
async fn a_due_time_can_be_that_of_a_time_zone() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        let right = right();
        for (n, (when, due)) in right.iter().enumerate() {
            let accepted = stack.accept(&named(&format!("job-{n}"), when)).await;
            assert_eq!(accepted["due_at"], *due, "{when}");
        }
        let items: Vec<_> =
            right.iter().enumerate().map(|(n, (when, _))| named(&format!("item-{n}"), when)).collect();
        let (_, answer) = stack.batch(&items).await;
        let lines: Vec<_> =
            items.iter().map(|item| with(item.clone(), "topic", "imported").to_string()).collect();
        assert_eq!(stack.import_lines(lines.join("\n")).await.json()["created"], right.len());
        for (n, (when, due)) in right.iter().enumerate() {
            assert_eq!(answer["results"][n]["job"]["due_at"], *due, "{when}");
            assert_eq!(stack.job("imported", &format!("item-{n}")).await.1["due_at"], *due, "{when}");
            let (status, moved) = stack.reschedule(TOPIC, "job-0", when).await;
            assert_eq!((status, &moved["due_at"]), (200, &json!(due)), "{when}");
        }
    }
}

#[tokio::test]
async fn times_that_contradict_themselves_are_refused_and_nothing_changes() {
    let stack = StackOptions::api_only().start().await;
    let kept = stack.accept(&named("kept", &json!({"delay": "1h"}))).await;
    for (when, field, why) in wrong() {
        let (status, problem) = stack.submit(&named("bad", &when)).await;
        assert_eq!(status, 422, "{when}: {problem}");
        assert!(only(&problem, field).contains(why), "{when}: {problem}");
        let (status, problem) = stack.reschedule(TOPIC, "kept", &when).await;
        assert_eq!(status, 422, "{when}: {problem}");
        assert!(only(&problem, field).contains(why), "{when}: {problem}");
    }
    let items: Vec<_> = wrong().iter().map(|(when, _, _)| named("bad", when)).collect();
    let (status, answer) = stack.batch(&items).await;
    assert_eq!((status, &answer["accepted"]), (200, &json!(0)), "{answer}");
    let lines: Vec<_> = items.iter().map(Value::to_string).collect();
    let answer = stack.import_lines(lines.join("\n")).await.json();
    assert_eq!(answer["refused"], items.len(), "{answer}");
    assert_eq!(stack.job(TOPIC, "bad").await.0, 404);
    assert_eq!(stack.job(TOPIC, "kept").await.1, kept);
}

#[tokio::test]
async fn the_time_zone_is_part_of_the_content_as_written() {
    let stack = StackOptions::api_only().start().await;
    let local = |zone: &str| named("i", &json!({"at": "2030-01-23T09:00", "time_zone": zone}));
    stack.accept(&local("Europe/Berlin")).await;
    assert_eq!(stack.submit(&local("Europe/Berlin")).await.0, 200);
    // The same point in time in another form is another job.
    assert_eq!(stack.submit(&local("Europe/Paris")).await.0, 409);
    assert_eq!(stack.submit(&named("i", &json!({"at": "2030-01-23T08:00:00Z"}))).await.0, 409);
}

#[tokio::test]
async fn filters_and_histories_take_only_points_in_time() {
    let stack = StackOptions::api_only().start().await;
    let dead = |history: Value| {
        let line = json!({"at": "2020-01-23T09:00", "time_zone": "Europe/Berlin", "state": "dead", "reason": "gone"});
        with_all(named("dead", &line), &history)
    };
    for (field, value) in [
        ("created_at", json!({"created_at": "2020-01-01T00:00:00"})),
        ("created_at", json!({"created_at": "2020-01-01T00:00:00+05:00[Europe/Berlin]"})),
        ("last.at", json!({"last": {"at": "2020-01-01T00:00:00Z[!x=1]"}})),
    ] {
        let answer = stack.import_lines(dead(value).to_string()).await.json();
        only(&answer["problems"][0]["problem"], field);
    }
    stack.import(&[dead(json!({"created_at": "2020-01-01T00:00:00+01:00[Europe/Berlin]"}))]).await;
    let job = stack.job(TOPIC, "dead").await.1;
    let times = (&job["created_at"], &job["due_at"]);
    assert_eq!(times, (&json!("2019-12-31T23:00:00.000Z"), &json!("2020-01-23T08:00:00.000Z")));
    died(&stack, "2020-01-23T09:00:00%2B01:00%5BEurope/Berlin%5D").await.expect(200);
    for (time, why) in [
        ("2020-01-23T09:00:00", "a local time"),
        ("2020-01-23T09:00:00%2B02:00%5BEurope/Berlin%5D", "Europe/Berlin is at +01:00 then"),
        ("2020-01-23T09:00:00Z%5B!Mars/Phobos%5D", "not a known time zone"),
    ] {
        let problem = died(&stack, time).await.expect(422);
        assert!(only(&problem, "died_after").contains(why), "{problem}");
    }
}

async fn died(stack: &Stack, after: &str) -> ringback_testkit::Reply {
    stack.get(&format!("/v1/topics/{TOPIC}/dead?died_after={after}")).await
}
