//! The shares of tenants in what an installation has few of: one tenant gets at most half of what the others leave.
//! Used for stored things, such as keys and schedules, and for consumers that wait.

use http::StatusCode;
use ringback_admission::Principal;
use ringback_core::job::Tenant;
use ringback_core::store_types::tenant_limit;
use ringback_service::http_server::{FairLimiter, Holder, NoPermit, Permit};

use crate::error::ApiError;

/// Checks that a caller may have one more of something of which there may be `most`. `holders` yields the tenant of
/// each one that there is. Callers without a tenant always may.
///
/// # Errors
/// 409 if the tenant of the caller has its share.
pub(crate) fn check_share(
    caller: &Principal,
    what: &str,
    most: usize,
    holders: impl Iterator<Item = Option<Tenant>>,
) -> Result<(), ApiError> {
    let Some(tenant) = caller.limited_tenant() else { return Ok(()) };
    let (mut all, mut own) = (0, 0);
    for holder in holders {
        all += 1;
        own += u64::from(holder.as_ref() == Some(tenant));
    }
    if own < tenant_limit(u32::MAX, most as u64, all, own) {
        return Ok(());
    }
    let detail = format!(
        "the tenant has {own} {what}, which is all that it may have: half of what the others leave of {most}"
    );
    Err(ApiError::new(StatusCode::CONFLICT, detail))
}

/// Takes the permit of a consumer that waits. `None` for callers without a tenant, which only their connections limit.
///
/// # Errors
/// 503 if the tenant of the caller has its share, or all permits are taken.
pub(crate) fn permit_to_wait(
    consumers: &FairLimiter,
    caller: &Principal,
) -> Result<Option<Permit>, ApiError> {
    let Some(tenant) = caller.limited_tenant() else { return Ok(None) };
    consumers.take(Holder::Name(tenant.as_str().into())).map(Some).map_err(|why| match why {
        NoPermit::AllTaken => ApiError::retry_later("too many consumers are waiting here"),
        NoPermit::HolderHas(held) => ApiError::retry_later(format_args!(
            "{held} consumers of your tenant are waiting here, which is all that one may have"
        )),
    })
}

#[cfg(test)]
mod tests {
    use ringback_core::job::TenantScope;

    use super::*;
    use crate::limits::of_tenant;

    fn tenant(name: &str) -> Tenant {
        name.parse().unwrap()
    }

    fn check(caller: &Principal, own: usize, others: usize) -> Result<(), ApiError> {
        let others = (0..others).map(|n| (n % 2 == 0).then(|| tenant("b")));
        let holders = std::iter::repeat_n(Some(tenant("a")), own).chain(others);
        check_share(caller, "pens", 100, holders)
    }

    #[test]
    fn a_tenant_has_half_of_what_the_others_leave() {
        let a = of_tenant("a");
        for (own, others, is_free) in
            [(0, 0, true), (49, 0, true), (50, 0, false), (24, 50, true), (25, 50, false), (0, 99, false)]
        {
            assert_eq!(check(&a, own, others).is_ok(), is_free, "{own} beside {others}");
        }
        let detail = check(&a, 25, 50).unwrap_err().0.detail;
        assert_eq!(
            detail,
            "the tenant has 25 pens, which is all that it may have: half of what the others leave of 100"
        );
    }

    #[test]
    fn the_operator_is_not_limited() {
        let operator = Principal::operator(TenantScope::One(Some(tenant("a"))));
        assert!(check(&operator, 100, 0).is_ok());
    }
}
