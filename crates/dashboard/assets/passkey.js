// Makes and uses passkeys, which no form can do by itself: asks the browser, and sends what it says with the form.
"use strict";

const decode = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
const encode = (bytes) => {
    const text = btoa(String.fromCharCode(...new Uint8Array(bytes)));
    return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
};

// An authenticator signs only for a user whom it has verified, and keeps the passkey itself: it is found without a name.
const create = ({ challenge, host, user, email, name, known }) => navigator.credentials.create({
    publicKey: {
        challenge: decode(challenge),
        rp: { id: host, name: "intake" },
        user: { id: new TextEncoder().encode(user), name: email, displayName: name },
        pubKeyCredParams: [-7, -8, -257].map((alg) => ({ type: "public-key", alg })),
        excludeCredentials: known.split(" ").filter(Boolean).map((id) => ({ type: "public-key", id: decode(id) })),
        authenticatorSelection: { residentKey: "required", requireResidentKey: true, userVerification: "required" },
        attestation: "none",
    },
});

const get = ({ challenge, host }) => navigator.credentials.get({
    publicKey: { challenge: decode(challenge), rpId: host, userVerification: "required" },
});

for (const form of document.querySelectorAll("form[data-passkey]")) {
    const notice = form.querySelector("[role=alert]");
    form.addEventListener("submit", async (event) => {
        event.preventDefault();
        notice.textContent = "";
        try {
            const made = form.dataset.passkey === "create";
            const { rawId, response } = await (made ? create : get)(form.dataset);
            const sent = {
                credential: rawId,
                client_data: response.clientDataJSON,
                authenticator_data: made ? response.getAuthenticatorData() : response.authenticatorData,
                ...(made ? { public_key: response.getPublicKey() } : { signature: response.signature }),
            };
            for (const [name, bytes] of Object.entries(sent)) {
                form.elements[name].value = encode(bytes);
            }
            form.submit();
        } catch (error) {
            notice.textContent = error?.name === "InvalidStateError" ? form.dataset.there : form.dataset.failed;
        }
    });
}
