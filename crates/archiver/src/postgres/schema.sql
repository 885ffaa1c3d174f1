-- The version of the schema.
create table ringback_schema (
  version integer primary key,
  made_at timestamptz not null default now()
);
insert into ringback_schema values (1);

-- Ended jobs. A job has a row for each time it ended; a row is never changed.
create table ringback_ended_jobs (
  -- '' without a tenant.
  tenant text collate "C" not null,
  topic text collate "C" not null,
  id text collate "C" not null,
  -- When the job was accepted, in ms since 1970: the number of this generation of the id. It survives export and import.
  generation bigint not null,
  -- How many attempts it had by then, with those of former generations.
  attempts bigint not null,
  -- done, dead, cancelled or purged.
  state text collate "C" not null,
  finished_at timestamptz not null,
  created_at timestamptz not null,
  first_due_at timestamptz not null,
  due_at timestamptz not null,
  failures bigint not null,
  -- Why it was dead: exhausted, gone, expired, ...
  reason text collate "C",
  -- Null for a pull job.
  url text,
  host text collate "C",
  -- The last failed attempt.
  last_at timestamptz,
  last_status integer,
  last_error text,
  last_duration_ms bigint,
  -- What was submitted beside URL and body: method, headers (secret values masked), context, retry, timeout, expires, ...
  request jsonb,
  -- The attempts that were logged, the newest last: attempt, at, duration_ms, status, error, answer, by.
  attempt_log jsonb not null,
  -- Whether all attempts of this generation are in it.
  attempts_complete boolean not null,
  tags text[] not null default '{}',
  archived_at timestamptz not null default now(),
  primary key (tenant, topic, id, generation, attempts, state, finished_at)
) partition by range (finished_at);

create index ringback_ended_jobs_by_topic on ringback_ended_jobs (tenant, topic, finished_at);
-- For pages of ended jobs of all topics.
create index ringback_ended_jobs_by_time on ringback_ended_jobs (tenant, finished_at);
create index ringback_ended_jobs_by_id on ringback_ended_jobs (id, finished_at);
create index ringback_ended_jobs_by_reason on ringback_ended_jobs (reason, finished_at) where reason is not null;
create index ringback_ended_jobs_by_host on ringback_ended_jobs (host, finished_at) where host is not null;
create index ringback_ended_jobs_by_tag on ringback_ended_jobs using gin (tags);

-- The bodies of these jobs, where they are kept.
create table ringback_bodies (
  tenant text collate "C" not null,
  topic text collate "C" not null,
  id text collate "C" not null,
  generation bigint not null,
  attempts bigint not null,
  state text collate "C" not null,
  finished_at timestamptz not null,
  content_type text,
  body bytea not null,
  primary key (tenant, topic, id, generation, attempts, state, finished_at)
) partition by range (finished_at);

-- Rows of months without a partition of their own.
create table ringback_ended_jobs_default partition of ringback_ended_jobs default;
create table ringback_bodies_default partition of ringback_bodies default;

-- Erasures. An ended job that waited in the store while it was erased is not kept when it comes. A mark is a hash in place
-- of what was erased.
create table ringback_erasures (
  mark bytea primary key,
  erased_at timestamptz not null
);

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
  -- How many jobs, or ended jobs, the call has changed, if it may change many.
  count bigint,
  -- done, or unknown if the call may have taken effect.
  outcome text collate "C" not null,
  trace_id text,
  archived_at timestamptz not null default now()
);
create index ringback_audit_log_by_time on ringback_audit_log (at);
