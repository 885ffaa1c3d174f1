//! Tests of reading request bodies: of many frames, and too large, too slow, or too many at once.

use std::io;

use futures_util::{Stream, stream};
use tokio::sync::mpsc;
use tokio::time::{Interval, interval_at};

use super::*;

/// Reads a body of a request without headers.
async fn read(body: Body, limit: usize, memory: &MemoryBudget) -> Result<Upload, ApiError> {
    let (parts, ()) = http::Request::new(()).into_parts();
    super::read(&parts, body, limit, memory).await
}

type Frame = io::Result<Bytes>;

fn frames(frames: impl IntoIterator<Item = impl Into<Bytes>>) -> impl Stream<Item = Frame> {
    stream::iter(frames.into_iter().map(|frame| Ok(frame.into())).collect::<Vec<_>>())
}

/// A body of `bytes` that then neither continues nor ends.
fn endless(bytes: usize) -> Body {
    Body::from_stream(frames([vec![b'x'; bytes]]).chain(stream::pending()))
}

/// An interval of a second, whose first tick is in a second.
fn seconds() -> Interval {
    let second = Duration::from_secs(1);
    interval_at(Instant::now() + second, second)
}

/// A body that brings `bytes` every second, and never ends.
fn dripping(bytes: usize) -> Body {
    Body::from_stream(stream::unfold(seconds(), move |mut seconds| async move {
        seconds.tick().await;
        Some((Frame::Ok(vec![b'x'; bytes].into()), seconds))
    }))
}

async fn text(body: Body, limit: usize) -> Bytes {
    read(body, limit, &MemoryBudget::default()).await.unwrap().bytes
}

/// Reads a body that must be refused. Returns the status, and after how many seconds.
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
    let large: Vec<Vec<u8>> = (b'0'..b'X').map(|letter| vec![letter; 3_000]).collect();
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
async fn bodies_that_crawl_hold_little_and_the_others_are_read() {
    let memory = MemoryBudget::default();
    let all = memory.free();
    // 32 KiB in two seconds: just above the minimum rate.
    let crawling = (0..50).map(|_| refusal(dripping(SMALL), 1 << 24, &memory));
    let others = async {
        let mut seconds = seconds();
        for _ in 0..28 {
            seconds.tick().await;
            let before = Instant::now();
            read(Body::from(vec![b'x'; 1 << 24]), 1 << 24, &memory).await.expect("there is room");
            assert_eq!(before.elapsed(), Duration::ZERO);
        }
        // What has arrived, and as much again.
        assert!(all - memory.free() <= 50 * 2 * 30 * SMALL, "{}", all - memory.free());
    };
    let (ends, ()) = tokio::join!(futures_util::future::join_all(crawling), others);
    assert_eq!(ends, [(408, 30); 50]);
    assert_eq!(memory.free(), all);
}

#[tokio::test(start_paused = true)]
async fn a_body_must_bring_a_part_of_what_it_holds() {
    let memory = MemoryBudget::default();
    // A burst of 8 MiB holds 16, and needs 560 KB in two seconds then.
    let burst = |rest: usize| {
        let burst = frames([vec![b'x'; 8 << 20]]);
        let rest = stream::unfold(seconds(), move |mut seconds| async move {
            seconds.tick().await;
            Some((Frame::Ok(vec![b'x'; rest].into()), seconds))
        });
        Body::from_stream(burst.chain(rest))
    };
    assert_eq!(refusal(burst(100_000), 1 << 24, &memory).await, (408, 2));
    assert_eq!(refusal(burst(SMALL), 1 << 24, &memory).await, (408, 2));
    // At an even pace it would arrive in time, and it is cut off by its length alone.
    assert_eq!(refusal(burst(500_000), 1 << 24, &memory).await.0, 413);
}

#[tokio::test(start_paused = true)]
async fn a_body_of_unknown_length_that_comes_evenly_is_read() {
    let memory = MemoryBudget::default();
    let ticks = stream::unfold(seconds(), |mut seconds| async move {
        seconds.tick().await;
        Some(((), seconds))
    });
    let even = ticks.take(29).map(|()| Frame::Ok(vec![b'x'; (16 << 20) / 29].into()));
    let whole = read(Body::from_stream(even), 16 << 20, &memory).await.expect("it comes in time");
    assert_eq!(whole.bytes.len(), (16 << 20) / 29 * 29);
    assert_eq!(whole.permit.bytes(), 16 << 20);
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
