# create_patient.py
import json
import os
import random
import re
import time

import httpx

REPEAT = {408, 429, 500, 502, 503, 504}


def is_a_wrong_setting(error):
    """True if the URL or certificate is wrong, so retrying won't help."""
    wrong = (httpx.LocalProtocolError, httpx.UnsupportedProtocol)
    return isinstance(error, wrong) or "CERTIFICATE_VERIFY_FAILED" in str(error)


def create_patient(client, body, idempotency_key, deadline=60):
    """Creates a patient, retrying until the deadline."""
    end = time.monotonic() + deadline
    longest_pause = 0.5
    while True:
        retry_after = 0
        try:
            response = client.post(
                "/patients",
                content=body,
                headers={"Content-Type": "application/json", "Idempotency-Key": idempotency_key},
                timeout=max(1, min(15, end - time.monotonic())),
            )
            if response.status_code not in REPEAT:
                return response
            problem = f"status {response.status_code}, X-Request-Id {response.headers.get('X-Request-Id')}"
            seconds = response.headers.get("Retry-After", "")
            retry_after = int(seconds) if seconds.isdigit() else 0
        except httpx.TransportError as error:
            if is_a_wrong_setting(error):
                raise ValueError(f"{type(error).__name__}: check the address and the certificate") from None
            problem = repr(error)
        pause = retry_after + random.uniform(0, longest_pause)
        if time.monotonic() + pause >= end:
            raise TimeoutError(f"not answered in time, try again later with the same key: {problem}")
        time.sleep(pause)
        longest_pause = min(20, longest_pause * 2)


key = os.environ["INTAKE_KEY"].strip()
if not re.fullmatch(r"[a-z0-9]+_(live|demo)_[0-9A-Za-z]{36}", key):
    raise SystemExit("INTAKE_KEY is not an API key")
# A client of httpx follows no redirects.
with httpx.Client(base_url=os.environ["INTAKE_URL"], headers={"Authorization": f"Bearer {key}"}) as client:
    patient = {
        "firstName": "Grace",
        "lastName": "Hopper",
        "phoneNumber": "+61491570156",
        "dateOfBirth": "1986-12-09",
    }
    # Both belong in your outbox before the first try.
    body, idempotency_key = json.dumps(patient).encode(), "acme-booking-1002"
    response = create_patient(client, body, idempotency_key)
    if response.status_code != 201:
        # A 422 names each wrong field.
        request_id = response.headers.get("X-Request-Id")
        raise SystemExit(f"refused with {response.status_code}, X-Request-Id {request_id}: {response.text}")
    print(response.json()["data"]["id"])
