// Node.js finds no module without the ending of its file's name; programs that bundle need none of this.
export default {
  input: "openapi.json",
  output: { path: "hey-api", importFileExtension: ".js" },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
};
