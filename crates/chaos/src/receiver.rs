//! The receiver of a run: it answers by the path of a job's URL, and by faults of the receiver as a whole.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_testkit::history::History;
use ringback_testkit::{Answer, Sink};

/// A fault of the whole receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Fine,
    Errors,
    Hangs,
    Resets,
    Slow,
}

/// A running receiver; dropping it closes its connections.
pub(crate) struct Receiver {
    sink: Sink,
    mood: Arc<Mutex<Mood>>,
}

impl Receiver {
    pub(crate) async fn start(seed: u64, history: &History) -> Self {
        let (mood, rng) = (Arc::new(Mutex::new(Mood::Fine)), Mutex::new(StdRng::seed_from_u64(seed)));
        let current = Arc::clone(&mood);
        let choose = move |path: &str| {
            let mood = *current.lock().unwrap_or_else(PoisonError::into_inner);
            answer(mood, path, &mut rng.lock().unwrap_or_else(PoisonError::into_inner))
        };
        Self { sink: Sink::recorded_only(history, choose).await, mood }
    }

    /// `http://127.0.0.1:<port>`.
    pub(crate) fn base(&self) -> String {
        self.sink.url("")
    }

    pub(crate) fn set_mood(&self, mood: Mood) {
        *self.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
    }
}

fn answer(mood: Mood, path: &str, rng: &mut StdRng) -> Answer {
    let mut millis = |low, high| Duration::from_millis(rng.random_range(low..high));
    match mood {
        Mood::Errors => return Answer::status(500),
        Mood::Hangs => return Answer::close().after(Duration::from_secs(5)),
        Mood::Resets => return Answer::close(),
        Mood::Slow => return Answer::status(200).after(millis(200, 1_500)),
        Mood::Fine => {}
    }
    match path {
        "/flaky" => match millis(0, 100).as_millis() {
            0..30 => Answer::status(500),
            30..33 => Answer::status(503).header("retry-after", "1"),
            33..36 => Answer::close(),
            _ => Answer::status(200),
        },
        "/slow" => Answer::status(200).after(millis(50, 600)),
        "/late" => Answer::status(200).after(millis(900, 1_400)),
        "/gone" => Answer::status(410),
        "/moved" => Answer::status(302),
        "/broken" => Answer::status(500),
        _ => Answer::status(200),
    }
}
