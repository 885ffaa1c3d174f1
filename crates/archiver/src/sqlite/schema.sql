-- The version of the schema.
create table ringback_schema (
  version integer primary key
);
insert into ringback_schema values (1);

-- Ended jobs. A job has a row for each time it ended; a row is never changed. Times are in ms since 1970.
create table ringback_ended_jobs (
  tenant text not null,
  topic text not null,
  id text not null,
  -- When the job was accepted: the number of this generation of the id. It survives export and import.
  generation integer not null,
  -- How many attempts it had by then, with those of former generations.
  attempts integer not null,
  -- done, dead, cancelled or purged.
  state text not null,
  finished_at integer not null,
  created_at integer not null,
  first_due_at integer not null,
  due_at integer not null,
  failures integer not null,
  -- Why it was dead: exhausted, gone, expired, ...
  reason text,
  -- Null for a pull job.
  url text,
  host text,
  -- The last failed attempt.
  last_at integer,
  last_status integer,
  last_error text,
  last_duration_ms integer,
  -- What was submitted beside URL and body, as JSON: method, headers (secret values masked), context, retry, timeout, ...
  request text,
  -- The attempts that were logged, as JSON, the newest last: attempt, at, duration_ms, status, error, answer, by.
  attempt_log text not null,
  -- Whether all attempts of this generation are in it: 0 or 1.
  attempts_complete integer not null,
  -- A JSON list.
  tags text not null default '[]',
  archived_at integer not null,
  primary key (tenant, topic, id, generation, attempts, state, finished_at)
) without rowid;

create index ringback_ended_jobs_by_topic on ringback_ended_jobs (tenant, topic, finished_at);
-- For pages of ended jobs of all topics.
create index ringback_ended_jobs_by_tenant on ringback_ended_jobs (tenant, finished_at);
create index ringback_ended_jobs_by_time on ringback_ended_jobs (finished_at);
create index ringback_ended_jobs_by_id on ringback_ended_jobs (id, finished_at);
create index ringback_ended_jobs_by_reason on ringback_ended_jobs (reason, finished_at) where reason is not null;
create index ringback_ended_jobs_by_host on ringback_ended_jobs (host, finished_at) where host is not null;

-- The bodies of these jobs, where they are kept.
create table ringback_bodies (
  tenant text not null,
  topic text not null,
  id text not null,
  generation integer not null,
  attempts integer not null,
  state text not null,
  finished_at integer not null,
  content_type text,
  body blob not null,
  primary key (tenant, topic, id, generation, attempts, state, finished_at)
);
create index ringback_bodies_by_time on ringback_bodies (finished_at);

-- The tags of ended jobs, by which they are found: a row for each tag of each end.
create table ringback_tags (
  tenant text not null,
  tag text not null,
  finished_at integer not null,
  topic text not null,
  id text not null,
  generation integer not null,
  attempts integer not null,
  state text not null,
  primary key (tenant, tag, finished_at, topic, id, generation, attempts, state)
) without rowid;
create index ringback_tags_by_time on ringback_tags (finished_at);

-- Erasures. An ended job that waited in the store while it was erased is not kept when it comes. A mark is a hash in place
-- of what was erased. Times are in ms since 1970.
create table ringback_erasures (
  mark blob primary key,
  erased_at integer not null
);

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
  -- How many jobs, or ended jobs, the call has changed, if it may change many.
  count integer,
  -- done, or unknown if the call may have taken effect.
  outcome text not null,
  trace_id text,
  archived_at integer not null
) without rowid;
create index ringback_audit_log_by_time on ringback_audit_log (at);
