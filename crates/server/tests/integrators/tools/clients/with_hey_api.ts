// Creates a patient with what @hey-api/openapi-ts makes of the document, and shows what is wrong with another one.
import { client } from "./hey-api/client.gen.js";
import { createPatient, validatePatient, type PatientToCreate } from "./hey-api/index.js";

client.setConfig({ baseUrl: process.env.INTAKE_URL, auth: process.env.INTAKE_KEY });
const patient: PatientToCreate = {
  firstName: "Ada",
  lastName: "Lovelace",
  phoneNumber: "+61491570006",
  dateOfBirth: "1985-12-10",
  country: "AU",
};

const checked = await validatePatient({ body: patient, headers: { Prefer: "handling=strict" } });
if (checked.error) throw new Error(checked.error.detail);

const created = await createPatient({ body: patient, headers: { "Idempotency-Key": "acme-booking-hey-api" } });
if (created.error) throw new Error(created.error.detail);

const refused = await createPatient({ body: { ...patient, phoneNumber: "0491 570 006" } });
console.log(created.data.data.id, refused.error?.errors?.[0]?.path[0]);
