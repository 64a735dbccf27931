// Creates a patient with what openapi-generator makes of the document for axios, and shows what is wrong with another.
import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import { isAxiosError } from "axios";
import { Configuration, PatientsApi, Preference, type PatientToCreate, type Problem } from "./typescript-axios/index.js";

const httpsAgent = new Agent({ ca: readFileSync(process.env.SSL_CERT_FILE!) });
const patients = new PatientsApi(
  new Configuration({ basePath: process.env.INTAKE_URL, accessToken: process.env.INTAKE_KEY, baseOptions: { httpsAgent } }),
);
const patient: PatientToCreate = {
  firstName: "Ada",
  lastName: "Lovelace",
  phoneNumber: "+61491570006",
  dateOfBirth: "1985-12-10",
  country: "AU",
};
const checked = await patients.validatePatient(patient, undefined, Preference.Handlingstrict);
if (checked.data.data !== null) throw new Error("nothing was created");
const created = await patients.createPatient(patient, "acme-booking-axios");
try {
  await patients.createPatient({ ...patient, phoneNumber: "0491 570 006" });
} catch (error) {
  if (!isAxiosError<Problem>(error)) throw error;
  console.log(created.data.data.id, error.response?.data.errors?.[0]?.path[0]);
}
