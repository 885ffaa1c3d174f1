//! Bugs that tests plant in the scripts: each replaces a line of the library. Those in the calls are in `calls`. Only
//! in builds with debug assertions.

mod calls;

use ringback_core::is_planted;

pub(crate) use self::calls::{count, found_before, move_on, taken_though_full};

/// Replaces a line if the bug of this name is planted. The line of each other bug has to be there as well, so that each
/// build finds a line that has changed.
macro_rules! plant {
    ($library:ident: $($bug:literal, $right:literal => $wrong:literal;)*) => {
        let whole = $library.clone();
        $(assert_eq!(whole.matches($right).count(), 1, "{}: the line is there once", $bug);
        if is_planted!($bug) {
            $library = $library.replace($right, $wrong);
        })*
    };
}

/// The library with the planted bug, if there is one.
pub(crate) fn replaced(mut library: String) -> String {
    plant! { library:
        "due-truncated-to-seconds", "return at > 0 and NOW_UP + at or NOW" =>
            "return at > 0 and math.floor((NOW_UP + at) / 1000) * 1000 or NOW";
        "delay-ignored", "return at > 0 and NOW_UP + at or NOW" => "return NOW";
        "promoted-early", "local bound = fields.slot > 0 and min(NOW, fields.slot * WIDTH - 1) or NOW" =>
            "local bound = NOW + 150";
        "popped-and-not-pushed", "ready.push(lane, entries, 'RPUSH')" =>
            "if n > 1 then ready.push(lane, entries, 'RPUSH') end";
        "cancel-changes-nothing", "  cancel(loc, raw, s, lane, from)" =>
            "  if from then return {CANCELLED, maybe_in_flight} end";
        "cancel-ignores-reserved", "jobs.put(loc, state.with_cancel(s))" => "";
        "accepted-not-counted", "shard.count('accepted', n)" => "shard.count('accepted', n - 1)";
        "failures-counted-twice", "goes_on_later(loc, state.with_failure(s, sub(o, 9)), o, lane, lease)" =>
            "goes_on_later(loc, state.with_failure(state.with_failure(s, sub(o, 9)), sub(o, 9)), o, lane, lease)";
        "stale-receipt-accepted", "if state.code(s) ~= RESERVED or state.receipt(s) ~= held then" =>
            "if state.code(s) ~= RESERVED then";
        "expired-lease-kept", "if at <= NOW and #over < limit then" => "if limit < 0 then";
        "lease-too-short", "pack('>I8', grant.last), NOW_UP + length" => "pack('>I8', grant.last), NOW_UP + 50";
        "renewal-forgotten", "jobs.put(loc, state.with_deadline(s, deadline))\n  jobs.save()" => "";
        "released-is-done", "    if kind == COMPLETE then\n      ends(loc" =>
            "    if kind == COMPLETE or kind == 4 then\n      ends(loc";
        "conflict-is-repetition", "local status = record.hash(raw) == hash and 200 or 409" => "local status = 200";
        "repeated-submit-makes-a-job", "if records[loc] or tombstones[loc] then return arrivals.taken(loc, rest) end" =>
            "";
        "dead-letter-not-indexed", "    elseif kind == BURY then\n      dead[#dead + 1] = dead_letters.entry(loc, lane)" =>
            "    elseif kind == BURY then";
        "retry-not-scheduled", "    schedule.add(lane, at, schedule.entry(loc, six(at)))\n    goes_on(" =>
            "    goes_on(";
        "retry-at-once", "local at = NOW_UP + outcomes.delay(o)" => "local at = NOW_UP";
        "retries-at-one-time", "local at = NOW_UP + outcomes.delay(o)" =>
            "local at = ceil((NOW_UP + outcomes.delay(o)) / 500) * 500";
        // That of a process whose clock is behind.
        "due-by-another-clock", "return at > 0 and NOW_UP + at or NOW" =>
            "return at > 0 and NOW_UP - 300 + at or NOW - 300";
        "lease-is-timeout", "min(timeout == 0 and default or timeout, longest) + margin end" =>
            "min(timeout == 0 and default or timeout, longest) end";
        "idempotency-not-atomic", "if records[loc] or tombstones[loc] then return arrivals.taken(loc, rest) end" =>
            "";
        "counted-outside-the-script", "shard.count('accepted', n)" => "";
        "counted-again-when-repeated", "answer = known and tombs.lease(known) == lease and REPLAYED" =>
            "answer = known and tombs.lease(known) == lease and (shard.count('done', 1) or REPLAYED)";
        "two-call-move", "ready.push(lane, entries, 'RPUSH')" =>
            "fields.taken = fields.taken or {}\n      fields.taken[#fields.taken + 1] = {lane, entries}";
        "two-call-move", "return {promoted, 0, unpack(waits)}" =>
            "local all = {promoted, 0, unpack(waits)}\n  all[8] = fields.taken\n  return all";
        "fence-not-compared", "return fields.epoch ~= tonumber(epoch)" => "return false";
        "fence-from-a-lost-counter", "max(fields.epoch + 1, NOW_US)" => "fields.epoch + 1";
    }
    library
}
