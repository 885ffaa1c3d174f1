-- The audit log: who has changed what by a call of the API. A row is never changed. Times are in ms since 1970.
create table ringback_audit_log (
  -- A ULID. Ids are in the order of their times.
  id text primary key,
  -- When the call was answered, by the clock of the API.
  at integer not null,
  -- The tenant whose topics the call was about. Null without one, and for the installation as a whole.
  tenant text,
  -- key: and the id of a key, root or open.
  who text not null,
  address text,
  operation text not null,
  -- What was changed, as JSON: topic, id, host, ...
  target text not null,
  -- JSON.
  before text,
  after text,
  -- How many jobs, or ends of jobs, the call has changed, if it may change many.
  count integer,
  -- done, or unknown if the call may have taken effect.
  outcome text not null,
  trace_id text,
  archived_at integer not null
) without rowid;
create index ringback_audit_log_by_time on ringback_audit_log (at);
