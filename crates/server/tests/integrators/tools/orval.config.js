// Its clients get the address when they are made.
export default {
  intake: { input: "openapi.json", output: { target: "orval.ts", client: "fetch", baseUrl: process.env.INTAKE_URL } },
};
