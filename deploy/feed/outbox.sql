-- The outbox of a feed: business transactions insert jobs here, and ringback-feed takes them out once they are committed.
-- Its columns are those of a feed (docs/operate/feeds.md). Those that are never used can be left out, but for id, and
-- those that are missing here can be added. Any other column stops the feed.
create table ringback_outbox (
  seq bigint generated always as identity primary key,
  id text not null default gen_random_uuid()::text,
  due_at timestamptz,
  url text,
  body jsonb,
  headers jsonb,
  context jsonb,
  tags text[],
  -- Why a row is not a job. Set it to null once the row is mended.
  error text,
  -- When a row was loaded, if the feed marks rows instead of deleting them.
  loaded_at timestamptz
);

create index ringback_outbox_waiting on ringback_outbox (seq) where error is null and loaded_at is null;

-- Wakes the feed when a transaction commits.
create function ringback_outbox_notify() returns trigger language plpgsql as $$
begin
  notify ringback_outbox;
  return null;
end
$$;

create trigger ringback_outbox_inserted after insert on ringback_outbox
  for each statement execute function ringback_outbox_notify();
