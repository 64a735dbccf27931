// send-many.mjs
const [atOnce, patients] = [Number(process.argv[2] ?? 16), 400];
const headers = { Authorization: `Bearer ${process.env.INTAKE_KEY.trim()}`, "Content-Type": "application/json" };
let next = 0;
const statuses = {};

// fetch keeps its connections open, one for each worker.
async function worker() {
  while (next < patients) {
    const patient = { firstName: "Test", lastName: `Patient-${next++}`, phoneNumber: "+61491570006", dateOfBirth: "1985-12-10" };
    const response = await fetch(`${process.env.INTAKE_URL}/patients/validate`, {
      method: "POST", headers, body: JSON.stringify(patient), redirect: "manual", signal: AbortSignal.timeout(15_000),
    });
    await response.arrayBuffer(); // Read the body, or the connection isn't reused.
    statuses[response.status] = (statuses[response.status] ?? 0) + 1;
  }
}

const started = performance.now();
await Promise.all(Array.from({ length: atOnce }, worker));
const speed = Math.round((1000 * patients) / (performance.now() - started));
console.log(`${statuses[200] ?? 0} of ${patients}`);
console.error(`${speed} a second, by status ${JSON.stringify(statuses)}`);
