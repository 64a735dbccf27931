// A certified OpenID Connect provider: node real_provider.mjs FOLDER-OF-PACKAGES PORT RETURN-ADDRESS SECRET
// A person who types an address at it is its owner.
const [packages, port, returnAddress, secret] = process.argv.slice(2);
const { Provider } = await import(`${packages}/node_modules/oidc-provider/lib/index.js`);

const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [{ client_id: 'intake', client_secret: secret, redirect_uris: [returnAddress] }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    pkce: { required: () => true },
    findAccount: (context, address) => ({
        accountId: address,
        claims: () => ({ sub: address, email: address, email_verified: !address.startsWith('unverified'), name: 'Ann Chovy' }),
    }),
});
provider.listen(Number(port), '127.0.0.1', () => console.log('listening'));
