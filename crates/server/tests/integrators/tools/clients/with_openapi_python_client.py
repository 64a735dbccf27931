"""Creates a patient with what openapi-python-client makes of the document, and shows what is wrong with another one."""

import datetime
import os

from generated import AuthenticatedClient
from generated.api.key import get_key
from generated.api.patients import create_patient, validate_patient
from generated.models import (
    CreatedPatient,
    DescribedKey,
    PatientToCreate,
    PatientToCreateCountry,
    Preference,
    Problem,
    ValidPatient,
)

client = AuthenticatedClient(base_url=os.environ["INTAKE_URL"], token=os.environ["INTAKE_KEY"])
described = get_key.sync(client=client)
assert isinstance(described, DescribedKey), described
assert client.token.endswith(described.data.hint), described

patient = PatientToCreate(
    first_name="Ada",
    last_name="Lovelace",
    phone_number="+61491570006",
    date_of_birth=datetime.date(1985, 12, 10),
    country=PatientToCreateCountry.AU,
)

checked = validate_patient.sync(client=client, body=patient, prefer=Preference.HANDLINGSTRICT)
assert isinstance(checked, ValidPatient), checked

created = create_patient.sync(client=client, body=patient, idempotency_key="acme-booking-python")
assert isinstance(created, CreatedPatient), created
assert created.data.country == "AU" and created.data.date_of_birth == datetime.date(1985, 12, 10), created

patient.phone_number = "0491 570 006"
refused = create_patient.sync(client=client, body=patient)
assert isinstance(refused, Problem), refused
print(created.data.id, refused.errors[0].path[0])
