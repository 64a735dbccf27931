# compare_day.py
import hashlib
import os
import re
import sys
import time
import uuid
from random import uniform

import httpx

DAY = "2025-12-03"
# From your records: the ids that this key created on that day, by the UTC day of `createdAt`.
IDS = []
FIRST, LAST = str(uuid.UUID(int=0)), str(uuid.UUID(int=2**128 - 1))
# So few ids are tried out here instead of asking again.
FEW = 1024
REPEAT = {408, 429, 500, 502, 503, 504}
# Of each question: about a minute, beside what Retry-After says.
TRIES = 12


def ask(client, after, until):
    """Returns what the register has of a part of the day."""
    for number in range(TRIES):
        retry_after = 0
        try:
            response = client.get(f"/key/days/{DAY}", params={"after": after, "until": until})
            if response.status_code == 200:
                return response.json()["data"]
            problem = f"status {response.status_code}, X-Request-Id {response.headers.get('X-Request-Id')}"
            if response.status_code not in REPEAT:
                raise SystemExit(f"refused with {problem.removeprefix('status ')}: {response.text}")
            seconds = response.headers.get("Retry-After", "")
            retry_after = int(seconds) if seconds.isdigit() else 0
        except httpx.TransportError as error:
            wrong = (httpx.LocalProtocolError, httpx.UnsupportedProtocol)
            if isinstance(error, wrong) or "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise SystemExit(f"{type(error).__name__}: check the address and the certificate") from None
            problem = repr(error)
        if number < TRIES - 1:
            print(f"waiting: {problem}", file=sys.stderr)
            time.sleep(retry_after + uniform(0, min(20, 0.5 * 2**number)))
    raise SystemExit(f"no answer, start again later: {problem}")


def digest(ids):
    return hashlib.sha256("".join(f"{id}\n" for id in ids).encode()).hexdigest()


def gone(ask, ids, after=FIRST, until=LAST):
    """Yields each of the sorted ids that the register does not have, and whether it was erased."""
    if len(ids) == 1:
        after, until = str(uuid.UUID(int=uuid.UUID(ids[0]).int - 1)), ids[0]
    part = ask(after, until)
    if not ids or part["digest"] == digest(ids):
        return
    if len(ids) == 1:
        yield ids[0], part["erased"] > 0
        return
    if part["created"] == len(ids) - 1 and len(ids) <= FEW:
        for place, id in enumerate(ids):
            if digest(ids[:place] + ids[place + 1 :]) == part["digest"]:
                yield from gone(ask, [id]) if part["erased"] else [(id, False)]
                return
    middle = len(ids) // 2
    yield from gone(ask, ids[:middle], after, ids[middle - 1])
    yield from gone(ask, ids[middle:], ids[middle - 1], until)


key = os.environ["INTAKE_KEY"].strip()
if not re.fullmatch(r"[a-z0-9]+_(live|demo)_[0-9A-Za-z]{36}", key):
    raise SystemExit("INTAKE_KEY is not an API key")
ids = sorted({str(uuid.UUID(id)) for id in IDS})
headers = {"Authorization": f"Bearer {key}"}
missing = 0
with httpx.Client(base_url=os.environ["INTAKE_URL"], headers=headers, timeout=15) as client:
    for id, was_erased in gone(lambda after, until: ask(client, after, until), ids):
        missing += 1
        # At once, so that a later error loses nothing.
        print(id, "was erased: delete what you have" if was_erased else "is lost: send it again", flush=True)
print(f"{len(ids)} ids compared, {missing} missing", file=sys.stderr)
