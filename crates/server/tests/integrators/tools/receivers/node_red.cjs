// Settings of a Node-RED on the port of PORT, without its editor.
module.exports = {
  uiHost: '127.0.0.1',
  uiPort: process.env.PORT,
  httpAdminRoot: false,
  userDir: __dirname,
  flowFile: 'flow.json',
  credentialSecret: false,
};
