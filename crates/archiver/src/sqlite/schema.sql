-- The version of the schema.
create table ringback_schema (
  version integer primary key
);
insert into ringback_schema values (1);

-- Ends of jobs. Each row is one end of one life of a job; a row is never changed. Times are in ms since 1970.
create table ringback_ends (
  tenant text not null,
  topic text not null,
  id text not null,
  -- When the job was accepted: the number of this life of the id. It survives export and import.
  life integer not null,
  -- How many attempts it had by then, with those of former lives.
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
  -- Whether all attempts of this life are in it: 0 or 1.
  attempts_complete integer not null,
  -- A JSON list.
  tags text not null default '[]',
  archived_at integer not null,
  primary key (tenant, topic, id, life, attempts, state, finished_at)
) without rowid;

create index ringback_ends_by_topic on ringback_ends (tenant, topic, finished_at);
-- For pages of ends of all topics.
create index ringback_ends_by_tenant on ringback_ends (tenant, finished_at);
create index ringback_ends_by_time on ringback_ends (finished_at);
create index ringback_ends_by_id on ringback_ends (id, finished_at);
create index ringback_ends_by_reason on ringback_ends (reason, finished_at) where reason is not null;
create index ringback_ends_by_host on ringback_ends (host, finished_at) where host is not null;

-- The bodies of these jobs, where they are kept.
create table ringback_bodies (
  tenant text not null,
  topic text not null,
  id text not null,
  life integer not null,
  attempts integer not null,
  state text not null,
  finished_at integer not null,
  content_type text,
  body blob not null,
  primary key (tenant, topic, id, life, attempts, state, finished_at)
);
create index ringback_bodies_by_time on ringback_bodies (finished_at);

-- The tags of ends, by which they are found: a row for each tag of each end.
create table ringback_tags (
  tenant text not null,
  tag text not null,
  finished_at integer not null,
  topic text not null,
  id text not null,
  life integer not null,
  attempts integer not null,
  state text not null,
  primary key (tenant, tag, finished_at, topic, id, life, attempts, state)
) without rowid;
create index ringback_tags_by_time on ringback_tags (finished_at);

-- Erasures. An end that waited in the store while it was erased is not kept when it comes. A mark is a hash in place
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
  -- How many jobs, or ends of jobs, the call has changed, if it may change many.
  count integer,
  -- done, or unknown if the call may have taken effect.
  outcome text not null,
  trace_id text,
  archived_at integer not null
) without rowid;
create index ringback_audit_log_by_time on ringback_audit_log (at);
