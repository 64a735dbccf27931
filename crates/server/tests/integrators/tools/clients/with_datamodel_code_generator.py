"""Creates a patient with the models that datamodel-code-generator makes of the document, and shows what is wrong with another."""

import datetime
import os

import httpx
from models import Country, CreatedPatient, PatientToCreate, Preference, Problem, ValidPatient

client = httpx.Client(base_url=os.environ["INTAKE_URL"], headers={"Authorization": f"Bearer {os.environ['INTAKE_KEY']}"})
patient = PatientToCreate(
    firstName="Ada",
    lastName="Lovelace",
    phoneNumber="+61491570006",
    dateOfBirth=datetime.date(1985, 12, 10),
    country=Country.AU,
)


def post(path, patient, headers=None):
    body = patient.model_dump_json(exclude_unset=True)
    return client.post(path, content=body, headers={"Content-Type": "application/json", **(headers or {})}).content


ValidPatient.model_validate_json(post("/patients/validate", patient, {"Prefer": Preference.handling_strict.value}))
created = CreatedPatient.model_validate_json(post("/patients", patient, {"Idempotency-Key": "acme-booking-models"}))
assert created.data.dateOfBirth == datetime.date(1985, 12, 10), created
refused = post("/patients", patient.model_copy(update={"phoneNumber": "0491 570 006"}))
print(created.data.id, Problem.model_validate_json(refused).errors[0].path[0])
