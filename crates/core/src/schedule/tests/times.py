"""Computes times.txt: when cron expressions fire, minute by minute and without a cron library, by the time zones of
Python's zoneinfo. Run it as `python3 times.py > times.txt`; the tests only read its output."""

from calendar import monthrange
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

YEARS = [
    ("America/New_York", 2026), ("Europe/Berlin", 2026), ("Australia/Lord_Howe", 2026), ("Pacific/Apia", 2011),
    ("Pacific/Apia", 2026),
]
EXPRESSIONS = [
    "30 2 * * *", "0 0 * * *", "15,45 1-3 * * SUN", "0 8 L * *", "0 9 * * MON#2", "59 23 31 12 *", "0 12 13 * FRI",
    "0 */6 * * *", "20 * 1-5 4,10,11 *",
]
# Clocks that change at midnight (Cairo, Santiago, Beirut), by two hours (Troll) and around Ramadan (Casablanca).
ZONES_OF_2025 = [
    "Africa/Cairo", "America/Santiago", "Asia/Beirut", "Antarctica/Troll", "Africa/Casablanca",
]
EXPRESSIONS_OF_2025 = [
    "30 2 * * *", "0 0 * * *", "15,45 23,0-2 5-7,21-31 2-4,9,10 *", "30 0,23 */2 * FRI", "40 */1 5-7,22-31 2-4,9,10 *",
]
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
MINUTE = timedelta(minutes=1)


def numbers(field, low, high):
    found = set()
    for part in field.split(","):
        part, _, step = part.partition("/")
        first, _, last = (low, "-", high) if part == "*" else part.partition("-")
        found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def matcher(expression):
    minute, hour, day, month, weekday = expression.split()
    minutes, hours, months = numbers(minute, 0, 59), numbers(hour, 0, 23), numbers(month, 1, 12)
    names, _, nth = weekday.partition("#")

    def is_day(at):
        if day == "L":
            return at.day == monthrange(at.year, at.month)[1]
        return at.day in numbers(day, 1, 31)

    def is_weekday(at):
        is_named = DAYS[(at.weekday() + 1) % 7] in names.split(",")
        return is_named and (not nth or (at.day - 1) // 7 + 1 == int(nth))

    def matches(at):
        if at.minute not in minutes or at.hour not in hours or at.month not in months:
            return False
        # Either day is enough, unless one begins with a star.
        if weekday == "*":
            return is_day(at)
        return is_weekday(at) and is_day(at) if day.startswith("*") else is_weekday(at) or is_day(at)

    return matches, hour.startswith("*")


def local_minutes(zone, year):
    """The minutes of a year with some days around it, in UTC, with their local times."""
    at, end = datetime(year - 1, 12, 25, tzinfo=timezone.utc), datetime(year + 1, 1, 8, tzinfo=timezone.utc)
    while at < end:
        yield at, at.astimezone(zone).replace(tzinfo=None)
        at += MINUTE


def main():
    cases = [(name, year, EXPRESSIONS) for name, year in YEARS]
    cases += [(name, 2025, EXPRESSIONS_OF_2025) for name in ZONES_OF_2025]
    for name, year, expressions in cases:
        minutes = list(local_minutes(ZoneInfo(name), year))
        start, end = datetime(year, 1, 1, tzinfo=timezone.utc), datetime(year + 1, 1, 1, tzinfo=timezone.utc)
        for expression in expressions:
            matches, is_elapsed = matcher(expression)
            times, reached = [], minutes[0][1] - MINUTE
            for at, local in minutes:
                if is_elapsed:
                    due = matches(local)
                else:
                    # All local times up to this one that were not reached before, those of a gap with it.
                    due = False
                    while reached < local:
                        reached += MINUTE
                        due = matches(reached) or due
                if due and start <= at < end:
                    times.append(at)
            print(f"{name} {year} {expression}")
            for i in range(0, len(times), 10):
                print("  " + " ".join(time.strftime("%Y%m%dT%H%M") for time in times[i:i + 10]))


main()
