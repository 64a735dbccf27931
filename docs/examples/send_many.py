# send_many.py
import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx

AT_ONCE, PATIENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 16, 400
limits = httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
headers = {"Authorization": f"Bearer {os.environ['INTAKE_KEY'].strip()}"}
with httpx.Client(base_url=os.environ["INTAKE_URL"], headers=headers, limits=limits, timeout=15) as client:

    def check(number):
        patient = {"firstName": "Test", "lastName": f"Patient-{number}", "phoneNumber": "+61491570006", "dateOfBirth": "1985-12-10"}
        return client.post("/patients/validate", json=patient).status_code

    started = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        statuses = list(threads.map(check, range(PATIENTS)))
    print(f"{statuses.count(200)} of {PATIENTS}", file=sys.stdout)
    speed = PATIENTS / (time.monotonic() - started)
    print(f"{speed:.0f} a second, by status {dict(Counter(statuses))}", file=sys.stderr)
