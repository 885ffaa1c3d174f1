//! One audited call: its entry is begun before the handler runs and completed with the answer. If the caller
//! disconnects before that, the entry says that the outcome is unknown.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts as _, RawPathParams};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use ringback_admission::Principal;
use ringback_core::hex::Hex;
use ringback_core::job::Trace;
use ringback_core::store_types::AuditLogOwner;
use ringback_service::http_server::ClientAddress;
use ringback_wire::{AuditLogEntry, AuditLogOutcome, AuditLogTarget};

use super::entry::{self, Change};
use super::queue::Queue;
use crate::access::Authenticated;
use crate::error::{ApiError, Effect};
use crate::limits::Deadline;
use crate::operation::{Need, Operation};

/// The result of a handler that answers 200 with JSON, and says what it has changed.
pub(crate) type Audited<T> = Result<(Change, Json<T>), ApiError>;

pub(crate) struct AuditLog {
    queue: Queue,
    /// Without a root key everybody may do everything, and nobody is known.
    has_root: bool,
}

impl AuditLog {
    pub(crate) fn new(queue: Queue, has_root: bool) -> Self {
        Self { queue, has_root }
    }

    /// Begins the entry of a call; `None` if the operation is not audited, or has another method.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        parts: &mut Parts,
        operation: Option<&Operation>,
        trace_of: fn(&Parts) -> Option<Trace>,
    ) -> Option<Call> {
        let operation =
            operation.filter(|operation| operation.is_audited && operation.method == parts.method)?;
        let caller = Authenticated::of(parts);
        let owner = if operation.need == Need::Root {
            AuditLogOwner::Installation
        } else {
            AuditLogOwner::Tenant(caller.tenant().cloned())
        };
        let address = parts.extensions.get::<ClientAddress>();
        let entry = AuditLogEntry {
            id: String::new(),
            at: String::new(),
            who: self.who(&caller),
            address: address.map(|address| address.0.to_canonical().to_string()),
            tenant: match &owner {
                AuditLogOwner::Tenant(Some(tenant)) => Some(tenant.to_string()),
                AuditLogOwner::Tenant(None) | AuditLogOwner::Installation => None,
            },
            operation: operation.name.to_string(),
            target: target(parts, &operation.path).await,
            before: None,
            after: None,
            count: None,
            // Until the answer is known.
            outcome: AuditLogOutcome::Unknown,
            trace_id: trace_of(parts).map(|trace| Hex(&trace.trace_id).to_string()),
        };
        let deadline = Deadline::from_now();
        Some(Call { log: Arc::clone(self), unfinished: Some((owner, entry)), deadline })
    }

    fn who(&self, caller: &Principal) -> String {
        match caller.key_id() {
            Some(id) => format!("key:{id}"),
            None if self.has_root => "root".to_owned(),
            None => "open".to_owned(),
        }
    }
}

/// The target of an entry: what the parameters of the path name, each cut to the length that an entry allows.
async fn target(parts: &mut Parts, path: &str) -> AuditLogTarget {
    let mut target = AuditLogTarget::default();
    let Ok(names) = RawPathParams::from_request_parts(parts, &()).await else { return target };
    for (name, value) in &names {
        let part = match name {
            "topic" => &mut target.topic,
            "id" if path.starts_with("/v1/schedules") => &mut target.schedule,
            "id" => &mut target.id,
            "secret" => &mut target.secret,
            "credential" => &mut target.credential,
            "bulk" => &mut target.bulk,
            "host" => &mut target.host,
            "key" if path.starts_with("/v1/topics") => &mut target.order_key,
            "key" => &mut target.key,
            "tenant" => &mut target.quota,
            _ => continue,
        };
        *part = Some(entry::part(value));
    }
    target
}

/// A call that has begun. Without its answer it leaves an entry that says that its outcome is unknown.
pub(crate) struct Call {
    log: Arc<AuditLog>,
    unfinished: Option<(AuditLogOwner, AuditLogEntry)>,
    deadline: Deadline,
}

impl Call {
    /// Queues the entry of a call: `done` after a success that changed something, `unknown` after a 500 or an error
    /// with an unknown effect, else none. Waits for room in the queue; without it, the entry is only logged.
    pub(crate) async fn end(mut self, response: &mut Response) {
        let extensions = response.extensions_mut();
        let (change, effect) = (extensions.remove::<Change>(), extensions.remove::<Effect>());
        let is_unknown =
            effect == Some(Effect::Unknown) || response.status() == StatusCode::INTERNAL_SERVER_ERROR;
        let Some((_, entry)) = &mut self.unfinished else { return };
        if response.status().is_success() {
            entry.outcome = AuditLogOutcome::Done;
            let Change { target, before, after, count, is_nothing } = change.unwrap_or_default();
            if is_nothing {
                self.unfinished = None;
                return;
            }
            entry.target.take(target);
            (entry.before, entry.after, entry.count) = (before, after, count);
        } else if !is_unknown {
            self.unfinished = None;
            return;
        }
        // The entry stays here until there is room for it, in case the caller goes away.
        let room = self.log.queue.room(self.deadline).await;
        if let Some((owner, entry)) = self.unfinished.take() {
            self.log.queue.note(owner, entry, room);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some((owner, entry)) = self.unfinished.take() {
            let room = self.log.queue.room_now();
            self.log.queue.note(owner, entry, room);
        }
    }
}
