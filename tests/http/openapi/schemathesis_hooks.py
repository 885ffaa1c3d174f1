"""What schemathesis needs to know to test the API: how lines are sent, which texts are durations, times and URLs,
and which refusals are no mismatch. The exceptions, with their reasons, are in exceptions.json."""

import json
import pathlib
from datetime import datetime, timedelta, timezone

import schemathesis
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks

EXCEPTIONS = json.loads(pathlib.Path(__file__).with_name("exceptions.json").read_text())

# Waits are kept short, and lie within the limits of every field.
DURATIONS = ["100ms", "0.25s", "150 milliseconds", "PT0.2S", "0:00:00.3", "120ms 500us", "+200ms"]
schemathesis.openapi.format("friendly-duration", st.sampled_from(DURATIONS))

# Not too far ahead, and only days that exist.
LAST = datetime.now(timezone.utc) + timedelta(days=3000)
TIMES = st.datetimes(datetime(1971, 1, 1), LAST.replace(tzinfo=None))
schemathesis.openapi.format("timestamp", TIMES.map(lambda time: time.isoformat(timespec="milliseconds") + "Z"))
schemathesis.openapi.format("time-zone", st.sampled_from(["Europe/Berlin", "america/new_york", "UTC", "Etc/GMT+5"]))

HOSTS = st.sampled_from(["h", "merchant.example", "A-1.b_2.c", "127.0.0.1", "[::1]", "10.0.0.9:8080", "xn--bcher-kva.example"])
PATHS = st.from_regex(r"\A(?:[/?][!-\"$-\[\]-~]{0,40})?\Z")
schemathesis.openapi.format("uri", st.builds("{}://{}{}".format, st.sampled_from(["http", "HTTPS"]), HOSTS, PATHS))


@schemathesis.serializer("application/x-ndjson")
def lines(ctx, value):
    """A line of JSON, or one for each item of a list."""
    items = value if isinstance(value, list) else [value]
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


@schemathesis.hook
def before_load_schema(ctx, schema):
    """Durations have no limits of length here. Half of the time went into looking for durations of exactly those
    lengths, in vain. `edges.rs` sends them."""
    duration = schema["components"]["schemas"]["FriendlyDuration"]
    del duration["minLength"], duration["maxLength"]


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """A reserve does not wait, a job with an id has no key besides, and no tenant is named, since there are none."""
    if case.headers:
        case.headers.pop("ringback-tenant", None)
    body = case.body
    if not isinstance(body, dict):
        return
    wait = body.get("wait")
    is_wait = isinstance(wait, (int, float)) and not isinstance(wait, bool) and 0 < wait <= 60
    if case.path.endswith("/reserve") and (is_wait or wait == "20s"):
        body["wait"] = 0
    if body.get("id") is not None and case.headers and case.meta.generation.mode.is_positive:
        case.headers.pop("Idempotency-Key", None)


@schemathesis.check
def valid_requests_are_taken(ctx, response, case):
    """`positive_data_acceptance`, but for what no schema can say."""
    if not may_be_refused(case, response):
        checks.positive_data_acceptance(ctx, response, case)


@schemathesis.check
def invalid_requests_are_refused(ctx, response, case):
    """`negative_data_rejection`, but for answers that have a result for each item. Too large is refused as well."""
    label = case.operation.label
    if response.status_code != 413 and not any(label in exception["operations"] for exception in EXCEPTIONS["accepted though invalid"]):
        checks.negative_data_rejection(ctx, response, case)


def may_be_refused(case, response):
    """Whether each mistake of a refusal is one that a schema cannot state."""
    if response.status_code != 422:
        return False
    errors = response.json()["errors"]
    return bool(errors) and all(is_known(error, case) for error in errors)


def is_known(error, case):
    value = case.body if isinstance(case.body, dict) else case.query
    for name in error["field"].split("."):
        value = value.get(name) if isinstance(value, dict) else None
    text = json.dumps(value, ensure_ascii=False)
    kinds = {None: True, "text": '"' in text, "fraction": isinstance(value, float), "not ASCII": not text.isascii()}
    return any(
        error["field"].removeprefix("job.") in exception["fields"]
        and exception.get("detail", "") in error["detail"]
        and kinds[exception.get("value")]
        for exception in EXCEPTIONS["refused though valid"]
    )
