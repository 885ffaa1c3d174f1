//! Trace context goes from a caller's request to each callback; spans go to an OTLP collector, which may be away.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use ringback_core::hex::Hex;
use ringback_testkit::{Answer, Arrival, Role, Script, Sink, Stack, StackOptions, eventually};

use crate::raw_post::{JSON, raw_post};
use crate::sample_jobs::{SOON, TOPIC, job};

const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN_ID: &str = "b7ad6b7169203331";

#[tokio::test]
async fn a_collector_reads_one_trace_from_the_submit_to_each_attempt() {
    let collector = Sink::start().await;
    let (stack, sink) = (exporting(&collector).start().await, Sink::start().await);
    let attempts = three_attempts(&stack, &sink, "traced", Some("01")).await;
    for attempt in &attempts {
        let [trace, span, flags] = traceparent(attempt);
        assert_eq!((trace.as_str(), flags.as_str()), (TRACE_ID, "01"));
        assert_ne!(span, SPAN_ID, "each attempt has a span of its own");
    }
    assert_ne!(traceparent(&attempts[0])[1], traceparent(&attempts[1])[1]);

    let spans = eventually(SOON, "the spans of the submit and of three attempts arrive", async || {
        let spans = spans(&collector);
        if spans.len() >= 4 { Ok(spans) } else { Err(format!("{spans:?}")) }
    })
    .await;
    let (submits, attempted): (Vec<_>, Vec<_>) =
        spans.iter().partition(|span| span.service == "ringback-api");
    let [submit] = submits[..] else { panic!("one span of the api: {spans:?}") };
    assert_eq!((submit.name.as_str(), submit.kind), ("POST /v1/jobs", SpanKind::Server));
    assert_eq!((submit.trace.as_str(), submit.parent.as_str()), (TRACE_ID, SPAN_ID));
    assert_eq!(submit.attribute("http.response.status_code"), "201");
    assert_eq!(attempted.len(), 3, "{spans:?}");
    for (n, attempt) in attempts.iter().enumerate() {
        let [_, sent, _] = traceparent(attempt);
        let span = attempted.iter().find(|span| span.id == sent);
        let span = span.unwrap_or_else(|| panic!("the receiver got span {sent}: {attempted:?}"));
        assert_eq!(
            (span.service.as_str(), span.name.as_str(), span.kind),
            ("ringback-notifier", "deliver", SpanKind::Client)
        );
        assert_eq!(
            (&span.trace, &span.parent),
            (&submit.trace, &submit.id),
            "attempt {n} is below the submit"
        );
        let attributes = ["job.topic", "job.id", "attempt", "http.response.status_code"];
        let number = (n + 1).to_string();
        assert_eq!(
            attributes.map(|name| span.attribute(name)),
            [TOPIC, "traced", &number, if n < 2 { "500" } else { "200" }]
        );
    }
    for export in collector.arrivals() {
        assert_eq!((export.method.as_str(), export.path.as_str()), ("POST", "/v1/traces"));
        assert_eq!(export.header("content-type"), Some("application/x-protobuf"));
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

/// The options of a stack whose APIs and notifiers export each span within about 100 ms of its end.
fn exporting(collector: &Sink) -> StackOptions {
    [Role::Api, Role::Notifier].into_iter().fold(Stack::options(), |options, role| {
        options.role_env(role, "OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url("")).role_env(
            role,
            "OTEL_BSP_SCHEDULE_DELAY",
            "100",
        )
    })
}

/// Submits a job whose first two attempts fail, with trace flags or without a trace. Returns its three arrivals.
async fn three_attempts(stack: &Stack, sink: &Sink, id: &str, flags: Option<&str>) -> Vec<Arrival> {
    sink.answer_job(id, Script::first(2, Answer::status(500)));
    let parent = flags.map(|flags| format!("00-{TRACE_ID}-{SPAN_ID}-{flags}"));
    let parent = parent.iter().map(|parent| ("traceparent", parent.as_str()));
    let headers: Vec<_> = [JSON].into_iter().chain(parent).collect();
    assert_eq!(raw_post(stack.url("/v1/jobs"), &headers, job(sink, id).to_string()).await.status, 201);
    sink.wait_for_job(id, 3, SOON).await
}

/// The trace id, span id and flags of an arrival. Panics without a valid `traceparent`.
fn traceparent(arrival: &Arrival) -> [String; 3] {
    let text = arrival.header("traceparent").unwrap_or_else(|| panic!("none in {:?}", arrival.headers));
    match text.split('-').collect::<Vec<_>>().as_slice() {
        ["00", trace, span, flags] => [trace, span, flags].map(|part| (*part).to_owned()),
        _ => panic!("{text} is not a traceparent"),
    }
}

/// A span as a collector reads it.
#[derive(Clone, Debug)]
struct Exported {
    service: String,
    name: String,
    kind: SpanKind,
    trace: String,
    id: String,
    parent: String,
    attributes: Vec<(String, String)>,
}

impl Exported {
    /// The value of an attribute as text; empty if there is none.
    fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// All spans that a collector got in the caller's trace.
fn spans(collector: &Sink) -> Vec<Exported> {
    let mut found = Vec::new();
    for export in collector.arrivals() {
        let export = ExportTraceServiceRequest::decode(export.body).expect("an export of OTLP");
        for of_process in export.resource_spans {
            let resource = texts(of_process.resource.unwrap_or_default().attributes);
            let service = resource.into_iter().find(|(name, _)| name == "service.name").unwrap_or_default().1;
            for span in of_process.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                found.push(Exported {
                    service: service.clone(),
                    kind: span.kind(),
                    name: span.name,
                    trace: Hex(&span.trace_id).to_string(),
                    id: Hex(&span.span_id).to_string(),
                    parent: Hex(&span.parent_span_id).to_string(),
                    attributes: texts(span.attributes),
                });
            }
        }
    }
    found.retain(|span| span.trace == TRACE_ID);
    found
}

fn texts(attributes: Vec<KeyValue>) -> Vec<(String, String)> {
    let text = |value: Option<Value>| match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes.into_iter().map(|entry| (entry.key, text(entry.value.and_then(|value| value.value)))).collect()
}
