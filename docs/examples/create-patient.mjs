// create-patient.mjs
const REPEAT = new Set([408, 429, 500, 502, 503, 504]);

const key = process.env.INTAKE_KEY.trim();
if (!/^[a-z0-9]+_(live|demo)_[0-9A-Za-z]{36}$/.test(key)) throw new Error("INTAKE_KEY is not an API key");

/** Creates a patient, retrying until the deadline. */
async function createPatient(body, idempotencyKey, deadline = 60) {
  const end = performance.now() + deadline * 1000;
  for (let longestPause = 500; ; longestPause = Math.min(20_000, longestPause * 2)) {
    let retryAfter = 0;
    let problem;
    try {
      const left = end - performance.now();
      const response = await fetch(`${process.env.INTAKE_URL}/patients`, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${key}`,
          "Content-Type": "application/json",
          "Idempotency-Key": idempotencyKey,
        },
        body,
        // Don't follow redirects with a patient's data.
        redirect: "manual",
        signal: AbortSignal.timeout(Math.ceil(Math.max(1000, Math.min(15_000, left)))),
      });
      const text = await response.text();
      const requestId = response.headers.get("X-Request-Id");
      if (!REPEAT.has(response.status)) return { status: response.status, requestId, text };
      problem = `status ${response.status}, X-Request-Id ${requestId}`;
      retryAfter = 1000 * (Number(response.headers.get("Retry-After")) || 0);
    } catch (error) {
      const code = error.cause?.code ?? error.code ?? error.name;
      // The URL, a header or the certificate is wrong: retrying won't help.
      if (/CERT|SIGNATURE|INVALID/.test(code)) throw new Error(`${code}: check the address and the certificate`);
      problem = code;
    }
    const pause = retryAfter + Math.random() * longestPause;
    if (performance.now() + pause >= end) {
      throw new Error(`not answered in time, try again later with the same key: ${problem}`);
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

const patient = {
  firstName: "Alan",
  lastName: "Turing",
  phoneNumber: "+61491570157",
  dateOfBirth: "1982-06-23",
};
// Both belong in your outbox before the first try.
const [body, idempotencyKey] = [JSON.stringify(patient), "acme-booking-1003"];
const { status, requestId, text } = await createPatient(body, idempotencyKey);
// A 422 names each wrong field.
if (status !== 201) throw new Error(`refused with ${status}, X-Request-Id ${requestId}: ${text}`);
console.log(JSON.parse(text).data.id);
