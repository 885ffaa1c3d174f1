//! Counts and lateness. An answer serves for a second, and only one request at a time asks
//! the store, so that a dashboard cannot load it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use ringback_core::contract::{Stats, StoreError};
use ringback_core::wire::{LatenessAnswer, OutboxAnswer, StatsAnswer, StoreAnswer, TombstonesAnswer};
use ringback_store::Store;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::deadline::Deadline;
use crate::error::{self, ApiError};
use crate::openapi::StatsProblems;
use crate::state::Api;

/// How long an answer serves.
const FRESH: Duration = Duration::from_secs(1);

/// Counts and lateness
///
/// Jobs per state, and how late hand-overs were over the last five minutes. Up to a second old.
#[utoipa::path(
    get, path = "/v1/stats", tag = "stats", operation_id = "stats",
    responses((status = 200, description = "The counts", body = StatsAnswer), StatsProblems),
)]
pub(crate) async fn stats(State(api): State<Arc<Api>>) -> Result<Json<StatsAnswer>, ApiError> {
    let answer =
        Deadline::from_now().bound(api.stats.answer(&api.store)).await.map_err(ApiError::too_late)?;
    answer.map(Json).map_err(|error| ApiError::from(&*error))
}

type Answered = Result<StatsAnswer, Arc<StoreError>>;

/// The last answer, an error included, and when it was asked for.
#[derive(Default)]
pub(crate) struct Cache(Mutex<Option<(Instant, Answered)>>);

impl Cache {
    async fn answer(&self, store: &Store) -> Answered {
        let mut last = self.0.lock().await;
        if let Some((asked, answer)) = &*last
            && asked.elapsed() < FRESH
        {
            return answer.clone();
        }
        let asked = Instant::now();
        let answer = match store.stats().await {
            Ok(stats) => Ok(shape(&stats, store)),
            Err(error) => {
                error::log(&error);
                Err(Arc::new(error))
            }
        };
        *last = Some((asked, answer.clone()));
        answer
    }
}

fn shape(stats: &Stats, store: &Store) -> StatsAnswer {
    StatsAnswer {
        states: stats.states.clone().into(),
        topics: stats.topics.len() as u64,
        lateness_ms: LatenessAnswer {
            p50: stats.lateness.quantile_ms(0.5),
            p99: stats.lateness.quantile_ms(0.99),
            max: stats.lateness.max_ms(),
        },
        tombstones: TombstonesAnswer { forgotten_early: stats.evicted_early },
        outbox: OutboxAnswer { deaths: stats.pending_notices },
        store: StoreAnswer { kind: store.kind().to_owned(), profile: store.profile().name().to_owned() },
    }
}
