"""What no schema can say about the interface, for schemathesis."""

import re
import uuid
from datetime import datetime, timedelta, timezone

import schemathesis
from schemathesis.core.parameters import ParameterLocation

IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")
DATE = re.compile(r"([0-9]{4})-([0-9]{2}-[0-9]{2})")
FIELDS = set()

# Characters beyond U+FFFF that draw nothing either. No class of a regular expression can name them in every dialect, so the
# document leaves them out.
BLANK_BEYOND = "\U0001BCA0-\U0001BCA3\U0001D173-\U0001D17A\U000E0000-\U000E0FFF"


@schemathesis.hook
def before_load_schema(context, schema):
    properties = schema["components"]["schemas"]["PatientToCreate"]["properties"]
    FIELDS.update(properties)
    for name in ["firstName", "lastName"]:
        pattern, count = re.subn(r"(\*\[\^[^\]]*)(\]\[)", rf"\1{BLANK_BEYOND}\2", properties[name]["pattern"])
        assert count == 1, f"the pattern of {name} has changed"
        properties[name]["pattern"] = pattern
    # Another preference is ignored, not refused.
    schema["components"]["schemas"]["Preference"].pop("enum")


@schemathesis.hook
def map_body(context, body):
    """A date of birth is neither before 1850 nor after today, as seen where it is latest."""
    if isinstance(body, dict) and isinstance(body.get("dateOfBirth"), str):
        sent = DATE.fullmatch(body["dateOfBirth"])
        today = (datetime.now(timezone.utc) + timedelta(hours=14)).date().isoformat()
        if sent and body["dateOfBirth"] > today:
            year = int(sent[1])
            while f"{year}-{sent[2]}" > today:
                # A leap year becomes a leap year.
                year -= 100 if year % 400 else 400
            return body | {"dateOfBirth": f"{year}-{sent[2]}"}
        if sent and int(sent[1]) < 1850:
            is_leap = int(sent[1]) % 4 == 0 and (int(sent[1]) % 100 != 0 or int(sent[1]) % 400 == 0)
            return body | {"dateOfBirth": f"{1904 if is_leap else 1903}-{sent[2]}"}
    return body


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = case.headers or {}
    sent_body = case.meta and case.meta.components.get(ParameterLocation.BODY)
    key = headers.get("Idempotency-Key")
    if sent_body and sent_body.mode.is_negative:
        # A wrong key is reported before a wrong field, and would hide that a field is not refused.
        headers.pop("Idempotency-Key", None)
    elif isinstance(key, str) and IDEMPOTENCY_KEY.fullmatch(key):
        # A key for each patient, as an integration sends it.
        headers["Idempotency-Key"] = (key + str(uuid.uuid4()))[-255:]
    # Strict mode takes what the document calls open for closed.
    if isinstance(case.body, dict) and set(case.body) - FIELDS and "strict" in str(headers.get("Prefer", "")).lower():
        del headers["Prefer"]
