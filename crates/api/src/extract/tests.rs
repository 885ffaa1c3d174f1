//! The caller's trace.

use axum::body::Body;

use super::*;

async fn caller(traceparent: &'static str) -> Option<Trace> {
    let request = Request::builder().header("traceparent", traceparent).body(Body::empty()).unwrap();
    let (mut parts, _) = request.into_parts();
    Caller::from_request_parts(&mut parts, &()).await.unwrap().0
}

#[tokio::test]
async fn the_callers_trace_travels_with_the_job() {
    let trace = caller("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").await.unwrap();
    assert_eq!((trace.trace_id[0], trace.parent_id[0], trace.flags), (0x0a, 0xb7, 1));
}

#[tokio::test]
async fn a_wrong_traceparent_counts_as_none() {
    assert_eq!(caller("00-nonsense").await, None);
}
