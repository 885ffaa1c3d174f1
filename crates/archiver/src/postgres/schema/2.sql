-- For pages of ends of all topics.
create index ringback_ends_by_time on ringback_ends (tenant, finished_at);

-- Erasures. An end that waited in the store while it was erased is not kept when it comes. A mark is a hash in place
-- of what was erased.
create table ringback_erasures (
  mark bytea primary key,
  erased_at timestamptz not null
);
