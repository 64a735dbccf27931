# compare_day.py
import hashlib
import os
import sys
import uuid

import httpx

DAY = "2025-12-03"
# From your records: the ids that this key created on that day, by the UTC day of `createdAt`.
IDS = []
FIRST, LAST = str(uuid.UUID(int=0)), str(uuid.UUID(int=2**128 - 1))
# So few ids are tried out here instead of asking again.
FEW = 1024


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


with httpx.Client(headers={"Authorization": f"Bearer {os.environ['INTAKE_KEY']}"}, timeout=15) as client:

    def ask(after, until):
        query = {"after": after, "until": until}
        answer = client.get(f"{os.environ['INTAKE_URL']}/key/days/{DAY}", params=query)
        return answer.raise_for_status().json()["data"]

    missing = list(gone(ask, sorted(IDS)))
    for id, was_erased in missing:
        print(id, "was erased: delete what you have" if was_erased else "is lost: send it again")
    print(f"{len(IDS)} ids compared, {len(missing)} missing", file=sys.stderr)
