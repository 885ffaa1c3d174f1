//! Thousands of jobs that are cancelled, rescheduled or run within milliseconds of their due time, on Redis and on the
//! embedded store: each response holds.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use ringback_core::store_types::Options;
use ringback_store::{Store, settings};
use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::{Arrival, Role, now};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::contract::audit;
use crate::prelude::*;
use crate::redis_layout;
use crate::sample_jobs::time;

const JOBS: usize = 5_000;
/// The time over which due times are spread evenly: a debug build on a busy machine keeps up with it.
const WITHIN: Duration = Duration::from_secs(12);
/// How long after the start of the submits the first job is due.
const AHEAD: Duration = Duration::from_secs(8);
/// The calls of a job are made at most this long before or after it is due.
const CLOSE: Duration = Duration::from_millis(5);
/// Calls under way at a time.
const CALLERS: usize = 32;
/// The limit of waits, for debug builds on a busy machine.
const END: Duration = Duration::from_secs(60);

/// A call for a job. A job gets one, two at the same time, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    Cancel,
    /// Milliseconds after the call.
    Reschedule(u64),
    Run,
}

/// The response to a call.
#[derive(Clone, Debug)]
struct Response {
    call: Call,
    asked: Timestamp,
    answered: Timestamp,
    /// Whether the call was repeated after a 503, which does not say whether the first one took effect.
    was_repeated: bool,
    status: u16,
    answer: Value,
}

/// When the calls for job `n` are made: at a millisecond from [`CLOSE`] before its due time to [`CLOSE`] after it.
fn moment(n: usize, due: Timestamp) -> Timestamp {
    let steps = 2 * CLOSE.as_millis() + 1;
    let step = u32::try_from(n as u128 / 10 % steps).expect("few");
    due - CLOSE + Duration::from_millis(1) * step
}

fn calls(n: usize) -> Vec<Call> {
    let (soon, later) = (Call::Reschedule(200), Call::Reschedule(1500));
    match n % 10 {
        0 | 8 => vec![Call::Cancel],
        7 => vec![Call::Cancel, Call::Cancel],
        1 => vec![later],
        2 => vec![Call::Run],
        3 => vec![Call::Cancel, later],
        4 => vec![Call::Cancel, Call::Run],
        5 => vec![Call::Run, later],
        6 => vec![later, soon],
        _ => Vec::new(),
    }
}

async fn call(stack: &Stack, id: &str, call: Call) -> Response {
    let (asked, mut was_repeated) = (now(), false);
    loop {
        let (status, answer) = match call {
            Call::Cancel => stack.cancel(TOPIC, id).await,
            Call::Reschedule(ms) => stack.reschedule(TOPIC, id, &json!({"delay": format!("{ms}ms")})).await,
            Call::Run => stack.run(TOPIC, id).await,
        };
        // A machine that is so busy that the store does not answer in time.
        if status != 503 {
            return Response { call, asked, answered: now(), was_repeated, status, answer };
        }
        was_repeated = true;
    }
}

/// Submits all jobs, and returns their due times. Panics if the first is due in less than [`CLOSE`] by then.
async fn submit(stack: &Stack, sink: &Sink) -> Vec<Timestamp> {
    let first = now() + AHEAD;
    let due = |n: usize| first + WITHIN * u32::try_from(n).expect("few") / u32::try_from(JOBS).expect("few");
    let jobs: Vec<Value> =
        (0..JOBS).map(|n| with(job(sink, &n.to_string()), "at", format!("{:.3}", due(n)))).collect();
    let mut dues = Vec::with_capacity(JOBS);
    for jobs in jobs.chunks(500) {
        // A busy machine may refuse some jobs, so the batch is repeated; for accepted jobs that changes nothing.
        let answer = eventually(END, "the jobs are accepted", async || match stack.batch(jobs).await {
            (200, answer) if answer["refused"] == 0 => Ok(answer),
            (status, answer) => Err(format!("{status}, {} refused", answer["refused"])),
        })
        .await;
        let results = answer["results"].as_array().expect("results");
        dues.extend(results.iter().map(|result| time(&result["job"]["due_at"])));
    }
    assert!(now() < first - CLOSE, "the submits have taken longer than they may");
    dues
}

/// Makes the calls for each job at its moment, from [`CALLERS`] callers. Returns the responses by job, if it has calls.
async fn hit(stack: &Arc<Stack>, due: &[Timestamp]) -> HashMap<usize, Vec<Response>> {
    let (next, mut callers) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
    let due: Arc<[Timestamp]> = due.into();
    for _ in 0..CALLERS {
        let (stack, next, due) = (Arc::clone(stack), Arc::clone(&next), Arc::clone(&due));
        callers.spawn(async move {
            let mut responses = Vec::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= JOBS {
                    return responses;
                }
                let id = n.to_string();
                sleep(moment(n, due[n]).duration_since(now()).try_into().unwrap_or_default()).await;
                match *calls(n) {
                    [] => {}
                    [one] => responses.push((n, vec![call(&stack, &id, one).await])),
                    [one, other, ..] => {
                        let both = tokio::join!(call(&stack, &id, one), call(&stack, &id, other));
                        responses.push((n, vec![both.0, both.1]));
                    }
                }
            }
        });
    }
    callers.join_all().await.into_iter().flatten().collect()
}

/// Asserts that a job has arrived as its responses allow: once, or never if it was cancelled, and not early. Returns
/// whether it was cancelled. No delivery fails here.
fn judge(n: usize, due: Timestamp, responses: &[Response], arrivals: &[&Arrival]) -> bool {
    let why = || {
        format!("job {n}, due {due}: {responses:?}, {:?}", arrivals.iter().map(|a| a.at).collect::<Vec<_>>())
    };
    let cancelled = responses.iter().any(|response| response.call == Call::Cancel && response.status == 200);
    assert_eq!(arrivals.len(), usize::from(!cancelled), "{}", why());
    for response in responses {
        let expected: &[u16] = match response.call {
            // The job may be on its way, or done.
            Call::Cancel => &[200, 202, 409],
            Call::Reschedule(_) | Call::Run => &[200, 409],
        };
        assert!(expected.contains(&response.status), "{}", why());
        if let Call::Reschedule(ms) = response.call
            && response.status == 200
        {
            let wanted = response.asked + Duration::from_millis(ms);
            assert!(time(&response.answer["due_at"]) >= wanted, "the answer is another time: {}", why());
        }
    }
    let Some(arrival) = arrivals.first() else { return cancelled };
    if responses.iter().any(|response| response.was_repeated) {
        return cancelled;
    }
    let moved: Vec<_> =
        responses.iter().filter(|response| response.status == 200 && response.call != Call::Cancel).collect();
    let earliest = match *moved.as_slice() {
        [] => due,
        [one] if one.call == Call::Run && one.answer["state"] == "ready" => one.asked.min(due),
        // The job was being delivered, or had ended.
        [one] if one.call == Call::Run => due,
        [one] => time(&one.answer["due_at"]),
        // Either of two calls at the same time may have come last.
        [one, other] => time(&one.answer["due_at"]).min(time(&other.answer["due_at"])),
        _ => panic!("two calls at most: {}", why()),
    };
    assert!(arrival.at >= earliest, "early: {}", why());
    assert!(arrival.due_at().is_some_and(|due| arrival.at >= due), "before its own due time: {}", why());
    cancelled
}

async fn what_was_answered_holds(stack: Stack) -> Stack {
    let (stack, sink) = (Arc::new(stack), Sink::start().await);
    let due = submit(&stack, &sink).await;
    let responses = hit(&stack, &due).await;
    // A call takes effect at some time between request and answer.
    let slack = CLOSE + Duration::from_millis(1);
    let close = |(n, responses): (&usize, &Vec<Response>)| {
        let cancels = responses.iter().filter(|response| response.call == Call::Cancel);
        let is_close =
            |cancel: &&Response| cancel.asked <= due[*n] + slack && cancel.answered >= due[*n] - slack;
        cancels.filter(is_close).count()
    };
    let close: usize = responses.iter().map(close).sum();
    assert!(close > 0, "no cancel came close to a due time");
    eventually(END, "nothing waits any more", async || {
        let states = stack.stats().await["states"].clone();
        let waits = ["delayed", "ready", "reserved"].map(|state| states[state].as_u64().expect("a count"));
        if waits == [0; 3] { Ok(()) } else { Err(states) }
    })
    .await;

    let arrivals = sink.arrivals();
    let mut of: HashMap<&str, Vec<&Arrival>> = HashMap::new();
    arrivals.iter().for_each(|arrival| of.entry(arrival.job_id()).or_default().push(arrival));
    let (mut cancelled, mut outcomes) = (0, HashMap::new());
    for (n, due) in due.iter().enumerate() {
        let responses = responses.get(&n).map(Vec::as_slice).unwrap_or_default();
        let arrivals = of.remove(n.to_string().as_str()).unwrap_or_default();
        cancelled += u64::from(judge(n, *due, responses, &arrivals));
        for response in responses {
            *outcomes.entry((response.call, response.status)).or_insert(0) += 1;
        }
    }
    let repeated = responses.values().flatten().filter(|response| response.was_repeated).count();
    assert!(repeated < JOBS / 4, "{repeated} calls were repeated: {outcomes:?}");
    let counts = (stack.count_in("done").await, stack.count_in("cancelled").await);
    assert_eq!(counts, (JOBS as u64 - cancelled, cancelled));
    // Unless each call has succeeded and been refused, there was no race.
    for call in [Call::Cancel, Call::Run, Call::Reschedule(1500)] {
        assert!(outcomes.contains_key(&(call, 200)) && outcomes.contains_key(&(call, 409)), "{outcomes:?}");
    }
    let store = if stack.ups.is_empty() { "redis" } else { "embedded" };
    Reached::new(Figure::CancelRaces, &format!("race on {store}"), close as u64).write();
    Arc::into_inner(stack).expect("all calls are over")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_answered_while_jobs_become_due_holds_on_redis() {
    let options = Stack::options().lock_ttl("15s").count(Role::Carrier, 2).count(Role::Notifier, 2);
    let stack = what_was_answered_holds(options.start().await).await;
    redis_layout::audit::keys(&mut stack.redis().client().await, "ringback").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_answered_while_jobs_become_due_holds_on_the_embedded_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("embedded:{}", directory.path().display());
    let mut stack =
        what_was_answered_holds(Stack::options().lock_ttl("15s").in_one_process().store(&url).start().await)
            .await;
    stack.ups[0].term();
    assert_eq!(stack.ups[0].wait_exit(END).await.code(), Some(0), "{}", stack.ups[0].log());
    let options = Options {
        url,
        prefix: "ringback".to_owned(),
        shards: 4,
        keep_done: Duration::from_secs(3600),
        keep_done_mib: 256,
        keep_dead: Duration::from_secs(3600),
        ..settings::defaults(Duration::from_secs(10))
    };
    let store = Store::open(options).expect("the options are right");
    store.prepare().await.expect("the store is fit");
    audit::tables(&store).await;
}
