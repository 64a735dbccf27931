"""What no schema can say about the interface, for schemathesis."""

import re
import uuid
from datetime import datetime, timedelta, timezone

import schemathesis
from schemathesis.core.parameters import ParameterLocation

IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")
DATE = re.compile(r"([0-9]{4})-([0-9]{2}-[0-9]{2})")
FIELDS = set()

# The same characters in two spellings. The document's compiles in every dialect; of it, Hypothesis makes a list of a million
# characters, again and again.
PORTABLE = "(?:[\\u0000-\U000DFFFF]|[^\\u0000-\U000E0FFF])"
QUICK = r"[^\1" + "\U000E0000-\U000E0FFF]"


@schemathesis.hook
def before_load_schema(context, schema):
    properties = schema["components"]["schemas"]["NewPatient"]["properties"]
    FIELDS.update(properties)
    for name in ["firstName", "lastName"]:
        pattern, count = re.subn(r"\(\?!\[(.*?)\]\)" + re.escape(PORTABLE), QUICK, properties[name]["pattern"])
        assert count == 1, f"the pattern of {name} has changed"
        properties[name]["pattern"] = pattern


@schemathesis.hook
def map_body(context, body):
    """A date of birth is not after today, as seen where it is latest."""
    if isinstance(body, dict) and isinstance(body.get("dateOfBirth"), str):
        sent = DATE.fullmatch(body["dateOfBirth"])
        today = (datetime.now(timezone.utc) + timedelta(hours=14)).date().isoformat()
        if sent and body["dateOfBirth"] > today:
            year = int(sent[1])
            while f"{year}-{sent[2]}" > today:
                # A leap year becomes a leap year.
                year -= 100 if year % 400 else 400
            return body | {"dateOfBirth": f"{year}-{sent[2]}"}
    return body


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = case.headers or {}
    sent_body = case.meta and case.meta.components.get(ParameterLocation.BODY)
    key = headers.get("Idempotency-Key")
    if sent_body and sent_body.mode.is_negative:
        # A wrong key is told before a wrong field, and would hide that a field is not refused.
        headers.pop("Idempotency-Key", None)
    elif isinstance(key, str) and IDEMPOTENCY_KEY.fullmatch(key):
        # A key for each patient, as an integration sends it.
        headers["Idempotency-Key"] = (key + str(uuid.uuid4()))[-255:]
    # Strict mode takes what the document calls open for closed.
    if isinstance(case.body, dict) and set(case.body) - FIELDS and "strict" in str(headers.get("Prefer", "")).lower():
        del headers["Prefer"]
