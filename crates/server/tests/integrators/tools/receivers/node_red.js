// Node-RED with a flow that takes webhooks: flow.json. Prints its base address.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { mkdtempSync } from "node:fs";
import { resolve } from "node:path";

// They are older than modules.
const load = createRequire(import.meta.url);
const RED = load("node-red");
const app = load("express")();
const server = createServer(app);
RED.init(server, {
  userDir: mkdtempSync("node-red-"),
  flowFile: resolve("flow.json"),
  httpAdminRoot: false,
  httpNodeRoot: "/",
  functionGlobalContext: { Webhook: load("standardwebhooks").Webhook, secret: process.env.SECRET },
  logging: { console: { level: "error" } },
});
app.use("/", RED.httpNode);
RED.events.on("flows:started", () => {
  server.listen(0, "127.0.0.1", () => {
    console.log(`http://127.0.0.1:${server.address().port}`);
    // Faults of the flow, among them signatures that do not hold.
    console.log = console.error;
  });
});
await RED.start();
