"""Creates a patient with what openapi-generator makes of the document for Python, and shows what is wrong with another."""

import datetime
import json
import os

import openapi_client
from openapi_client import PatientToCreate, Preference, Problem

configuration = openapi_client.Configuration(
    host=os.environ["INTAKE_URL"], access_token=os.environ["INTAKE_KEY"], ssl_ca_cert=os.environ["SSL_CERT_FILE"]
)
patients = openapi_client.PatientsApi(openapi_client.ApiClient(configuration))
patient = PatientToCreate(
    firstName="Ada", lastName="Lovelace", phoneNumber="+61491570006", dateOfBirth=datetime.date(1985, 12, 10), country="AU"
)
checked = patients.validate_patient(patient, prefer=Preference.HANDLING_EQUAL_STRICT)
assert checked.data is None, checked
created = patients.create_patient(patient, idempotency_key="acme-booking-generated")
assert created.data.date_of_birth == datetime.date(1985, 12, 10), created
try:
    patients.create_patient(patient.model_copy(update={"phone_number": "0491 570 006"}))
except openapi_client.ApiException as refused:
    problem = Problem.from_dict(json.loads(refused.body))
    print(created.data.id, problem.errors[0].path[0])
