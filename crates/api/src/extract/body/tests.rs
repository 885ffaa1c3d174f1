//! Bodies of many frames, and bodies that are too large, too slow, or too many at once.

use std::io;

use futures_util::{Stream, stream};
use tokio::sync::mpsc;
use tokio::time::{Interval, interval_at};

use super::*;

type Frame = io::Result<Bytes>;

fn frames(frames: impl IntoIterator<Item = impl Into<Bytes>>) -> impl Stream<Item = Frame> {
    stream::iter(frames.into_iter().map(|frame| Ok(frame.into())).collect::<Vec<_>>())
}

/// A body of `bytes` that then neither continues nor ends.
fn endless(bytes: usize) -> Body {
    Body::from_stream(frames([vec![b'x'; bytes]]).chain(stream::pending()))
}

/// Ticks every second, first in a second.
fn seconds() -> Interval {
    let second = Duration::from_secs(1);
    interval_at(Instant::now() + second, second)
}

/// An endless body that brings `bytes` every second.
fn dripping(bytes: usize) -> Body {
    Body::from_stream(stream::unfold(seconds(), move |mut seconds| async move {
        seconds.tick().await;
        Some((Frame::Ok(vec![b'x'; bytes].into()), seconds))
    }))
}

async fn text(body: Body, limit: usize) -> Bytes {
    read(body, limit, &MemoryBudget::default()).await.unwrap().bytes
}

/// The status for a body that cannot be read, and after how many seconds it is known.
async fn refusal(body: Body, limit: usize, memory: &MemoryBudget) -> (u16, u64) {
    let start = Instant::now();
    let status = read(body, limit, memory).await.unwrap_err().0.status;
    (status, start.elapsed().as_secs())
}

#[tokio::test]
async fn frames_are_put_together() {
    assert_eq!(text(Body::from_stream(frames(["ab", "c", "def"])), 6).await, "abcdef");
    assert_eq!(text(Body::from_stream(frames(["ab"])), 6).await, "ab");
    assert_eq!(text(Body::empty(), 6).await, "");
    let large: Vec<Vec<u8>> = (0..40).map(|n| vec![n; 3_000]).collect();
    let whole = text(Body::from_stream(frames(large.clone())), 1 << 20).await;
    assert_eq!(whole, large.concat());
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_too_large() {
    let memory = MemoryBudget::default();
    assert_eq!(refusal(Body::from_stream(frames(["ab", "c"])), 2, &memory).await, (413, 0));
    assert_eq!(refusal(Body::from("abc"), 2, &memory).await, (413, 0));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_unreadable() {
    let broken = frames(["ab"]).chain(stream::iter([Err(io::Error::other("reset"))]));
    assert_eq!(refusal(Body::from_stream(broken), 6, &MemoryBudget::default()).await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn a_small_body_has_half_a_minute_and_takes_no_memory_of_the_budget() {
    let memory = MemoryBudget::default();
    let all = memory.free();
    assert_eq!(refusal(endless(0), 6, &memory).await, (408, 30));
    let (sender, mut receiver) = mpsc::channel(1);
    let body = Body::from_stream(stream::poll_fn(move |context| receiver.poll_recv(context)));
    let sent = async {
        let (mut frames, mut seconds) = (0, seconds());
        while sender.send(Frame::Ok("x".into())).await.is_ok() {
            seconds.tick().await;
            assert_eq!(memory.free(), all);
            frames += 1;
        }
        frames
    };
    let (refused, frames) = tokio::join!(refusal(body, 1 << 24, &memory), sent);
    assert_eq!(refused, (408, 30));
    assert!(frames >= 29, "{frames}");
}

#[tokio::test(start_paused = true)]
async fn a_body_with_a_permit_must_arrive_at_a_minimum_rate() {
    let memory = MemoryBudget::default();
    let all = memory.free();
    assert_eq!(refusal(endless(SMALL + 1), 1 << 24, &memory).await, (408, 2));
    assert_eq!(refusal(dripping(SMALL / 4), 1 << 24, &memory).await, (408, 7));
    assert_eq!(refusal(dripping(SMALL), 1 << 24, &memory).await, (408, 30));
    assert_eq!(memory.free(), all);
}

#[tokio::test(start_paused = true)]
async fn a_large_body_is_answered_though_it_does_not_end() {
    assert_eq!(refusal(endless(3), 2, &MemoryBudget::default()).await, (413, 2));
}

#[tokio::test(start_paused = true)]
async fn without_memory_large_bodies_are_refused_and_small_ones_read() {
    let memory = MemoryBudget::default();
    let large = || Body::from(vec![b'x'; 16 << 20]);
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(read(large(), 16 << 20, &memory).await.unwrap());
    }
    assert_eq!(memory.free(), 0);
    assert_eq!(refusal(large(), 16 << 20, &memory).await.0, 503);
    assert_eq!(read(Body::from("small"), 16 << 20, &memory).await.unwrap().bytes, "small");
    // A permit that is returned goes to a body that waits.
    let give = async { drop(held.pop()) };
    assert!(tokio::join!(read(large(), 16 << 20, &memory), give).0.is_ok());
}
