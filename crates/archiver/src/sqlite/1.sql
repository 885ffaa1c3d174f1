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
