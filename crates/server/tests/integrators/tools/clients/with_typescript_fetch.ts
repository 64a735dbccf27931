// Creates a patient with what openapi-generator makes of the document for fetch, and shows what is wrong with another.
import { Configuration, PatientsApi, PatientToCreateCountryEnum, Preference, ProblemFromJSON, ResponseError } from "./typescript-fetch/index.js";

const patients = new PatientsApi(
  new Configuration({ basePath: process.env.INTAKE_URL, accessToken: process.env.INTAKE_KEY }),
);
const patient = {
  firstName: "Ada",
  lastName: "Lovelace",
  phoneNumber: "+61491570006",
  dateOfBirth: new Date("1985-12-10"),
  country: PatientToCreateCountryEnum.Au,
};
const checked = await patients.validatePatient({ patientToCreate: patient, prefer: Preference.Handlingstrict });
if (checked.data !== null) throw new Error("nothing was created");
const created = await patients.createPatient({ patientToCreate: patient, idempotencyKey: "acme-booking-fetch" });
try {
  await patients.createPatient({ patientToCreate: { ...patient, phoneNumber: "0491 570 006" } });
} catch (error) {
  if (!(error instanceof ResponseError)) throw error;
  const problem = ProblemFromJSON(await error.response.json());
  console.log(created.data.id, problem.errors?.[0]?.path[0]);
}
