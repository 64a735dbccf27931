// Creates a patient with what openapi-typescript and openapi-fetch make of the document, and shows what is wrong with another.
import createClient from "openapi-fetch";
import type { components, paths } from "./openapi-typescript.js";

const client = createClient<paths>({
  baseUrl: process.env.INTAKE_URL,
  headers: { Authorization: `Bearer ${process.env.INTAKE_KEY}` },
});
const described = await client.GET("/key");
if (described.error) throw new Error(described.error.detail);
if (!process.env.INTAKE_KEY?.endsWith(described.data.data.hint)) throw new Error("This is the hint of another key");

const patient: components["schemas"]["PatientToCreate"] = {
  firstName: "Ada",
  lastName: "Lovelace",
  phoneNumber: "+61491570006",
  dateOfBirth: "1985-12-10",
  country: "AU",
};
// @ts-expect-error A misspelt member is seen before anything is sent.
patient.emial = "ada@example.com";
delete (patient as Record<string, unknown>).emial;

const checked = await client.POST("/patients/validate", { body: patient, params: { header: { Prefer: "handling=strict" } } });
if (checked.error) throw new Error(checked.error.detail);

const header = { "Idempotency-Key": "acme-booking-openapi-fetch" };
const created = await client.POST("/patients", { body: patient, params: { header } });
if (created.error) throw new Error(created.error.detail);

const refused = await client.POST("/patients", { body: { ...patient, phoneNumber: "0491 570 006" } });
console.log(created.data.data.id, refused.error?.errors?.[0]?.path[0]);
