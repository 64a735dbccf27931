// Creates a patient with what swagger-typescript-api makes of the document, and shows what is wrong with another one.
import { Api, type HttpResponse, type PatientToCreate, type Problem, type CreatedPatient } from "./swagger-typescript-api.js";

const { patients } = new Api({
  baseUrl: process.env.INTAKE_URL,
  securityWorker: () => ({ headers: { Authorization: `Bearer ${process.env.INTAKE_KEY}` } }),
});
const patient: PatientToCreate = {
  firstName: "Ada",
  lastName: "Lovelace",
  phoneNumber: "+61491570006",
  dateOfBirth: "1985-12-10",
  country: "AU",
};

await patients.validatePatient(patient, { headers: { Prefer: "handling=strict" } });
const created = await patients.createPatient(patient, { headers: { "Idempotency-Key": "acme-booking-swagger" } });
try {
  await patients.createPatient({ ...patient, phoneNumber: "0491 570 006" });
} catch (refused) {
  const { error } = refused as HttpResponse<CreatedPatient, Problem>;
  console.log(created.data.data.id, error.errors?.[0]?.path[0]);
}
