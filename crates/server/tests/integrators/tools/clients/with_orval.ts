// Creates a patient with what orval makes of the document, and shows what is wrong with another one.
import { createPatient, validatePatient, type PatientToCreate } from "./orval.js";

const Authorization = `Bearer ${process.env.INTAKE_KEY}`;
const patient: PatientToCreate = {
  firstName: "Ada",
  lastName: "Lovelace",
  phoneNumber: "+61491570006",
  dateOfBirth: "1985-12-10",
  country: "AU",
};

const checked = await validatePatient(patient, { headers: { Authorization, Prefer: "handling=strict" } });
if (checked.status !== 200) throw new Error(checked.data.detail);

const created = await createPatient(patient, { headers: { Authorization, "Idempotency-Key": "acme-booking-orval" } });
if (created.status !== 201) throw new Error(created.data.detail);

const refused = await createPatient({ ...patient, phoneNumber: "0491 570 006" }, { headers: { Authorization } });
if (refused.status === 422) console.log(created.data.data.id, refused.data.errors?.[0]?.path[0]);
