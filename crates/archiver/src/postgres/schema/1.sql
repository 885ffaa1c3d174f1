-- Ends of jobs. Each row is one end of one life of a job; a row is never changed.
create table ringback_ends (
  -- '' without a tenant.
  tenant text collate "C" not null,
  topic text collate "C" not null,
  id text collate "C" not null,
  -- When the job was accepted, in ms since 1970: the number of this life of the id. It survives export and import.
  life bigint not null,
  -- How many attempts it had by then, with those of former lives.
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
  -- Whether all attempts of this life are in it.
  attempts_complete boolean not null,
  tags text[] not null default '{}',
  archived_at timestamptz not null default now(),
  primary key (tenant, topic, id, life, attempts, state, finished_at)
) partition by range (finished_at);

create index ringback_ends_by_topic on ringback_ends (tenant, topic, finished_at);
create index ringback_ends_by_id on ringback_ends (id, finished_at);
create index ringback_ends_by_reason on ringback_ends (reason, finished_at) where reason is not null;
create index ringback_ends_by_host on ringback_ends (host, finished_at) where host is not null;
create index ringback_ends_by_tag on ringback_ends using gin (tags);

-- The bodies of these jobs, where they are kept.
create table ringback_bodies (
  tenant text collate "C" not null,
  topic text collate "C" not null,
  id text collate "C" not null,
  life bigint not null,
  attempts bigint not null,
  state text collate "C" not null,
  finished_at timestamptz not null,
  content_type text,
  body bytea not null,
  primary key (tenant, topic, id, life, attempts, state, finished_at)
) partition by range (finished_at);

-- Rows of months without a partition of their own.
create table ringback_ends_default partition of ringback_ends default;
create table ringback_bodies_default partition of ringback_bodies default;
