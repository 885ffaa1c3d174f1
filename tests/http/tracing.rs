//! Trace context from the caller's request to the callback, and export to a collector.

use ringback_testkit::{Answer, Arrival, Role, Script, Sink, Stack, StackOptions, eventually};

use crate::raw_post::{JSON, raw_post};
use crate::sample_jobs::{SOON, TOPIC, job};

const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN_ID: &str = "b7ad6b7169203331";

#[tokio::test]
async fn a_collector_gets_the_spans_of_api_and_notifier_in_the_callers_trace() {
    let collector = Sink::start().await;
    let (stack, sink) = (exporting(&collector).start().await, Sink::start().await);
    let attempts = three_attempts(&stack, &sink, "traced", Some("01")).await;
    for attempt in &attempts {
        let [trace, span, flags] = traceparent(attempt);
        assert_eq!((trace.as_str(), flags.as_str()), (TRACE_ID, "01"));
        assert_ne!(span, SPAN_ID, "each attempt has a span of its own");
    }
    assert_ne!(traceparent(&attempts[0])[1], traceparent(&attempts[1])[1]);

    let trace = bytes_of(TRACE_ID);
    for service in ["ringback-api", "ringback-notifier"] {
        eventually(SOON, &format!("the spans of {service} arrive"), async || {
            let exports = collector.arrivals();
            let found = exports
                .iter()
                .any(|export| has(&export.body, service.as_bytes()) && has(&export.body, &trace));
            if found { Ok(()) } else { Err(format!("{} exports have arrived", exports.len())) }
        })
        .await;
    }
    for export in collector.arrivals() {
        assert_eq!((export.method.as_str(), export.path.as_str()), ("POST", "/v1/traces"));
        assert_eq!(export.header("content-type"), Some("application/x-protobuf"));
    }
    // The exported spans are those in the headers that the receiver got.
    for attempt in &attempts {
        let span = bytes_of(&traceparent(attempt)[1]);
        eventually(SOON, "the span of each attempt arrives", async || {
            let exported = collector.arrivals().iter().any(|export| has(&export.body, &span));
            if exported { Ok(()) } else { Err(format!("{:?} has not", attempt.header("traceparent"))) }
        })
        .await;
    }
}

#[tokio::test]
async fn a_collector_that_is_away_delays_nothing() {
    let collector = Sink::start().await;
    collector.answer(Answer::status(200).held());
    let (mut stack, sink) = (exporting(&collector).start().await, Sink::start().await);
    three_attempts(&stack, &sink, "traced", Some("01")).await;
    collector.wait_for(1, SOON).await;
    three_attempts(&stack, &sink, "again", Some("01")).await;
    stack.wait_state(TOPIC, "again", "done", SOON).await;
    for process in [&mut stack.apis[0], &mut stack.notifiers[0]] {
        process.term();
        assert_eq!(process.wait_exit(SOON).await.code(), Some(0), "{}", process.log());
    }
}

#[tokio::test]
async fn the_callers_trace_is_kept_without_a_collector_as_well() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    for flags in ["01", "00"] {
        let id = format!("flags-{flags}");
        let attempts = three_attempts(&stack, &sink, &id, Some(flags)).await;
        let spans: Vec<String> = attempts.iter().map(|attempt| traceparent(attempt)[1].clone()).collect();
        for attempt in &attempts {
            let [trace, _, sent] = traceparent(attempt);
            assert_eq!((trace.as_str(), sent.as_str()), (TRACE_ID, flags));
        }
        assert!(spans[0] != spans[1] && spans[1] != spans[2] && !spans.contains(&SPAN_ID.to_owned()));
    }
}

#[tokio::test]
async fn all_attempts_of_a_job_are_of_one_trace_when_its_caller_had_none() {
    let collector = Sink::start().await;
    for options in [Stack::options(), exporting(&collector)] {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let mut traces = Vec::new();
        for id in ["one", "other"] {
            let attempts = three_attempts(&stack, &sink, id, None).await;
            let [trace, ..] = traceparent(&attempts[0]);
            assert!(attempts.iter().all(|attempt| traceparent(attempt)[0] == trace), "{attempts:?}");
            traces.push(trace);
        }
        assert_ne!(traces[0], traces[1], "two jobs are two traces");
    }
}

/// A stack whose api and notifier export their traces, soon after they have ended.
fn exporting(collector: &Sink) -> StackOptions {
    [Role::Api, Role::Notifier].into_iter().fold(Stack::options(), |options, role| {
        options.role_env(role, "OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url("")).role_env(
            role,
            "OTEL_BSP_SCHEDULE_DELAY",
            "100",
        )
    })
}

/// Submits a job, with or without a trace, and fails it twice.
async fn three_attempts(stack: &Stack, sink: &Sink, id: &str, flags: Option<&str>) -> Vec<Arrival> {
    sink.answer_job(id, Script::first(2, Answer::status(500)));
    let parent = flags.map(|flags| format!("00-{TRACE_ID}-{SPAN_ID}-{flags}"));
    let parent = parent.iter().map(|parent| ("traceparent", parent.as_str()));
    let headers: Vec<_> = [JSON].into_iter().chain(parent).collect();
    assert_eq!(raw_post(stack.url("/v1/jobs"), &headers, job(sink, id).to_string()).await.status, 201);
    sink.wait_for_job(id, 3, SOON).await
}

/// Trace id, span id and flags.
fn traceparent(arrival: &Arrival) -> [String; 3] {
    let text = arrival.header("traceparent").unwrap_or_else(|| panic!("none in {:?}", arrival.headers));
    match text.split('-').collect::<Vec<_>>().as_slice() {
        ["00", trace, span, flags] => [trace, span, flags].map(|part| (*part).to_owned()),
        _ => panic!("{text} is no traceparent"),
    }
}

/// Decodes hexadecimal digits.
fn bytes_of(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn has(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}
