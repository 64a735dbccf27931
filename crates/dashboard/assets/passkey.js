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

const get = ({ challenge, host }, options) => navigator.credentials.get({
    publicKey: { challenge: decode(challenge), rpId: host, userVerification: "required" }, ...options,
});

const send = (form, { rawId, response }) => {
    const made = form.dataset.passkey === "create";
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
};

for (const form of document.querySelectorAll("form[data-passkey]")) {
    const notice = form.querySelector("[role=alert]");
    form.addEventListener("submit", async (event) => {
        event.preventDefault();
        notice.textContent = "";
        try {
            send(form, await (form.dataset.passkey === "create" ? create : get)(form.dataset));
        } catch (error) {
            notice.textContent = error?.name === "InvalidStateError" ? form.dataset.there : form.dataset.failed;
        }
    });
}

// Where the browser can, the field for the email offers passkeys. The challenge comes from the page that signs in with
// one.
const offer = async (field) => {
    if (!await globalThis.PublicKeyCredential?.isConditionalMediationAvailable?.()) {
        return;
    }
    const answer = await fetch("/sign-in/passkey", { method: "POST" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const form = page.querySelector("form[data-passkey]");
    if (!answer.ok || !form) {
        return;
    }
    const chosen = await get(form.dataset, { mediation: "conditional" });
    form.elements.next.value = field.form.elements.next.value;
    form.hidden = true;
    document.body.append(form);
    send(form, chosen);
};

for (const field of document.querySelectorAll("input[autocomplete~=webauthn]")) {
    // What fails leaves the other ways to sign in.
    offer(field).catch(() => {});
}
