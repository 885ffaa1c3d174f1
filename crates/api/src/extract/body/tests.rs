//! Bodies in many frames, that are too large, too slow, or too many at once.

use std::io;

use futures_util::{Stream, stream};
use tokio::sync::mpsc;
use tokio::time::{Interval, interval_at};

use super::*;

type Frame = io::Result<Bytes>;

fn frames(frames: impl IntoIterator<Item = impl Into<Bytes>>) -> impl Stream<Item = Frame> {
    stream::iter(frames.into_iter().map(|frame| Ok(frame.into())).collect::<Vec<_>>())
}

/// As many bytes as that, and then nothing more though the body is not over.
fn endless(bytes: usize) -> Body {
    Body::from_stream(frames([vec![b'x'; bytes]]).chain(stream::pending()))
}

/// Each second from the next one on.
fn seconds() -> Interval {
    let second = Duration::from_secs(1);
    interval_at(Instant::now() + second, second)
}

/// A body that brings so many bytes each second for ever.
fn dripping(bytes: usize) -> Body {
    Body::from_stream(stream::unfold(seconds(), move |mut seconds| async move {
        seconds.tick().await;
        Some((Frame::Ok(vec![b'x'; bytes].into()), seconds))
    }))
}

async fn text(body: Body, limit: usize) -> Bytes {
    read(body, limit, &Room::default()).await.unwrap().bytes
}

/// The status of a body that cannot be read, and the seconds until it was clear.
async fn refusal(body: Body, limit: usize, room: &Room) -> (u16, u64) {
    let start = Instant::now();
    let status = read(body, limit, room).await.unwrap_err().0.status;
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
    let room = Room::default();
    assert_eq!(refusal(Body::from_stream(frames(["ab", "c"])), 2, &room).await, (413, 0));
    assert_eq!(refusal(Body::from("abc"), 2, &room).await, (413, 0));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_unreadable() {
    let broken = frames(["ab"]).chain(stream::iter([Err(io::Error::other("reset"))]));
    assert_eq!(refusal(Body::from_stream(broken), 6, &Room::default()).await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn a_small_body_is_given_half_a_minute_and_no_room() {
    let room = Room::default();
    let all = room.free();
    assert_eq!(refusal(endless(0), 6, &room).await, (408, 30));
    let (sender, mut receiver) = mpsc::channel(1);
    let body = Body::from_stream(stream::poll_fn(move |context| receiver.poll_recv(context)));
    let sent = async {
        let (mut frames, mut seconds) = (0, seconds());
        while sender.send(Frame::Ok("x".into())).await.is_ok() {
            seconds.tick().await;
            assert_eq!(room.free(), all);
            frames += 1;
        }
        frames
    };
    let (refused, frames) = tokio::join!(refusal(body, 1 << 24, &room), sent);
    assert_eq!(refused, (408, 30));
    assert!(frames >= 29, "{frames}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_holds_room_must_keep_up_a_pace() {
    let room = Room::default();
    let all = room.free();
    assert_eq!(refusal(endless(SMALL + 1), 1 << 24, &room).await, (408, 2));
    assert_eq!(refusal(dripping(SMALL / 4), 1 << 24, &room).await, (408, 7));
    assert_eq!(refusal(dripping(SMALL), 1 << 24, &room).await, (408, 30));
    assert_eq!(room.free(), all);
}

#[tokio::test(start_paused = true)]
async fn a_large_body_that_does_not_end_is_answered_all_the_same() {
    assert_eq!(refusal(endless(3), 2, &Room::default()).await, (413, 2));
}

#[tokio::test(start_paused = true)]
async fn where_there_is_no_room_large_bodies_are_refused_and_small_ones_read() {
    let room = Room::default();
    let large = || Body::from(vec![b'x'; 16 << 20]);
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(read(large(), 16 << 20, &room).await.unwrap());
    }
    assert_eq!(room.free(), 0);
    assert_eq!(refusal(large(), 16 << 20, &room).await.0, 503);
    assert_eq!(read(Body::from("small"), 16 << 20, &room).await.unwrap().bytes, "small");
    // What one gives back another takes, also while it waits.
    let give = async { drop(held.pop()) };
    assert!(tokio::join!(read(large(), 16 << 20, &room), give).0.is_ok());
}
