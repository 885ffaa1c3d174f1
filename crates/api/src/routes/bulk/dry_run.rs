//! Dry runs of bulk operations: count the jobs that match a filter, and change nothing. If the deadline is near before
//! all jobs were examined, the number is estimated from those that were.

use futures_util::future::try_join_all;
use ringback_admission::Principal;
use ringback_core::store_types::{Cursor, Filter, StoreError};
use ringback_service::http_server::Peer;
use ringback_wire::{DryRunResponse, MAX_EXAMPLES};

use crate::error::ApiError;
use crate::limits::Deadline;
use crate::state::Api;

/// How many jobs one page of the store looks at, so that the store can answer others between two of them.
const LOOK: usize = 200;

/// Counts the jobs that match a filter, once it is the caller's turn. Only operators learn how many were examined.
pub(super) async fn count(
    api: &Api,
    caller: &Principal,
    peer: Peer,
    filter: Filter,
) -> Result<DryRunResponse, ApiError> {
    let deadline = Deadline::from_now();
    let _turn = deadline.bound(api.scans.wait(caller.holder(peer))).await?;
    let counted = deadline.bound(count_until(api, &filter, deadline)).await??;
    // The number of all jobs is not for tenants.
    let examined = counted.examined.filter(|_| caller.is_operator());
    Ok(DryRunResponse { examined, ..counted })
}

/// Counts the jobs that match a filter. If the deadline is near before all were examined, estimates the number.
async fn count_until(api: &Api, filter: &Filter, deadline: Deadline) -> Result<DryRunResponse, StoreError> {
    let mut answer = DryRunResponse { count: 0, exact: false, examples: Vec::new(), examined: None };
    let (mut examined, indexed) = (0, api.store.indexed_jobs(filter).await?);
    // All parts of the store at once, because jobs of one shard may differ from those of another.
    let mut cursors = api.store.page_starts(filter);
    loop {
        let reads = cursors.iter().map(async |from| {
            let page = api.store.page(filter, Some(*from), LOOK).await?;
            Ok::<_, StoreError>((page, from.shard))
        });
        let mut left: Vec<Cursor> = Vec::new();
        for (page, shard) in try_join_all(reads).await? {
            examined += page.examined as u64;
            answer.count += page.items.len() as u64;
            let room = MAX_EXAMPLES - answer.examples.len();
            answer.examples.extend(page.items.into_iter().take(room).map(Into::into));
            left.extend(page.next.filter(|next| next.shard == shard));
        }
        cursors = left;
        if cursors.is_empty() || deadline.is_near() {
            break;
        }
    }
    answer.exact = cursors.is_empty();
    if !answer.exact {
        let all = match indexed {
            Some(all) => all,
            None => {
                let counts = api.store.stats().await?.states;
                counts.delayed + counts.ready + counts.reserved + counts.dead
            }
        };
        answer.count = estimate(answer.count, examined, all);
    }
    answer.examined = Some(examined);
    Ok(answer)
}

/// Estimates how many of `all` jobs match, if `fitting` of the `examined` jobs do.
fn estimate(fitting: u64, examined: u64, all: u64) -> u64 {
    let all = u128::from(all.max(examined));
    let estimate = u128::from(fitting) * all / u128::from(examined.max(1));
    u64::try_from(estimate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_in_proportion_to_what_was_looked_at() {
        assert_eq!(estimate(5, 100, 1000), 50);
        assert_eq!(estimate(0, 100, 1000), 0);
        assert_eq!(estimate(0, 0, 1000), 0);
        assert_eq!(estimate(7, 10, 8), 7, "jobs that ended meanwhile");
        assert_eq!(estimate(u64::MAX / 2, u64::MAX / 2, u64::MAX), u64::MAX);
    }
}
