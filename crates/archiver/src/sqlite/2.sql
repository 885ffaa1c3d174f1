-- For pages of ends of all topics.
create index ringback_ends_by_tenant on ringback_ends (tenant, finished_at);

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
