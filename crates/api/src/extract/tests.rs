//! Bodies in many frames, and the caller's trace.

use std::io;

use futures_util::stream;

use super::*;

fn frames(frames: Vec<io::Result<&'static str>>) -> Body {
    Body::from_stream(stream::iter(frames))
}

async fn caller(traceparent: &'static str) -> Option<Trace> {
    let request = Request::builder().header("traceparent", traceparent).body(Body::empty()).unwrap();
    let (mut parts, _) = request.into_parts();
    Caller::from_request_parts(&mut parts, &()).await.unwrap().0
}

#[tokio::test]
async fn frames_are_put_together() {
    assert_eq!(read(frames(vec![Ok("ab"), Ok("c"), Ok("def")]), 6).await.unwrap(), "abcdef");
    assert_eq!(read(frames(vec![Ok("ab")]), 6).await.unwrap(), "ab");
    assert_eq!(read(Body::empty(), 6).await.unwrap(), "");
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_too_large() {
    assert_eq!(read(frames(vec![Ok("ab"), Ok("c")]), 2).await.unwrap_err().0.status, 413);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_unreadable() {
    let broken = frames(vec![Ok("ab"), Err(io::Error::other("reset"))]);
    assert_eq!(read(broken, 6).await.unwrap_err().0.status, 400);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_given_up() {
    let silent = Body::from_stream(stream::pending::<io::Result<&str>>());
    assert_eq!(read(silent, 6).await.unwrap_err().0.status, 408);
}

#[tokio::test(start_paused = true)]
async fn a_large_body_that_does_not_end_is_answered_all_the_same() {
    let endless = stream::iter([Ok::<_, io::Error>("abc")]).chain(stream::pending());
    assert_eq!(read(Body::from_stream(endless), 2).await.unwrap_err().0.status, 413);
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
