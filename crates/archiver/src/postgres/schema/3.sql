-- The audit log: who has changed what by a call of the API. A row is never changed.
create table ringback_audit_log (
  -- A ULID. Ids are in the order of their times.
  id text collate "C" primary key,
  -- When the call was answered, by the clock of the API.
  at timestamptz not null,
  -- The tenant whose topics the call was about. Null without one, and for the installation as a whole.
  tenant text collate "C",
  -- key: and the id of a key, root or open.
  who text collate "C" not null,
  address text,
  operation text collate "C" not null,
  -- What was changed: topic, id, host, ...
  target jsonb not null,
  before jsonb,
  after jsonb,
  -- How many jobs, or ends of jobs, the call has changed, if it may change many.
  count bigint,
  -- done, or unknown if the call may have taken effect.
  outcome text collate "C" not null,
  trace_id text,
  archived_at timestamptz not null default now()
);
create index ringback_audit_log_by_time on ringback_audit_log (at);
