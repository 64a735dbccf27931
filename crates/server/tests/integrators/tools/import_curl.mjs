// Imports a curl command as Postman does, and as a library for low-code tools does. Prints each answer.
import bany from "@bany/curl-to-json";
import postman from "curl-to-postmanv2";

const command = process.argv[2];
const read = bany(command);
const imported = await new Promise((resolve, reject) =>
  postman.convert({ type: "string", data: command }, (error, result) => (error ? reject(error) : resolve(result))),
);
if (!imported.result) throw new Error(imported.reason);
const request = imported.output[0].data;

for (const [url, method, headers, body] of [
  [request.url, request.method, request.header.map(({ key, value }) => [key, value]), request.body.raw],
  [read.url, read.method, read.header, JSON.stringify(read.data)],
]) {
  const answer = await fetch(url, { method, headers, body });
  console.log(await answer.text());
}
