// Sends a request from the page, with the reader's own key, and shows request and answer as they are. The key stays in its
// field: it is neither stored nor shown.
const form = document.getElementById("try-it-form");
const exchange = document.getElementById("try-it-exchange");
const status = document.getElementById("try-it-status");
const ANSWER_TIMEOUT = 15_000;
let isSending = false;

const message = (firstLine, headers, body) => {
    const lines = headers.map(([name, value]) => `${name}: ${value}`);
    return [firstLine, ...lines, "", body].join("\n");
};

const send = async () => {
    const key = document.getElementById("try-it-key").value;
    if (/^[a-z][a-z0-9]*_live_/.test(key)) {
        status.textContent = "This is a key of production. It was not sent.";
        return;
    }
    const [method, path] = form.elements.operation.value.split(" ");
    const hasBody = method === "POST";
    const body = hasBody ? document.getElementById("try-it-body").value : "";
    const idempotencyKey = document.getElementById("try-it-idempotency-key").value;
    const isStrict = document.getElementById("try-it-strict").checked;
    const own = hasBody ? [
        ...(isStrict ? [["Prefer", "handling=strict"]] : []),
        ...(idempotencyKey === "" ? [] : [["Idempotency-Key", idempotencyKey]]),
        ["Content-Type", "application/json"],
    ] : [];
    const day = new Date().toISOString().slice(0, 10);
    const url = `${location.origin}/api/v1${path.replace("YYYY-MM-DD", day)}`;
    // Without a key the service says what it says to everybody who has none.
    const hasKey = key !== "";
    const shown = [...(hasKey ? [["Authorization", "Bearer (your key)"]] : []), ...own];
    const sent = [...(hasKey ? [["Authorization", `Bearer ${key}`]] : []), ...own];
    document.getElementById("try-it-request").textContent = message(`${method} ${url}`, shown, body);
    document.getElementById("try-it-answer").textContent = "";
    exchange.hidden = false;
    status.textContent = "Sending…";
    const answer = await fetch(url, {
        method,
        headers: sent,
        ...(hasBody ? { body } : {}),
        credentials: "omit",
        redirect: "error",
        signal: AbortSignal.timeout(ANSWER_TIMEOUT),
    });
    const firstLine = `${answer.status} ${answer.statusText}`.trim();
    const text = message(firstLine, [...answer.headers], await answer.text());
    document.getElementById("try-it-answer").textContent = text;
    status.textContent = firstLine;
    exchange.scrollIntoView({ block: "nearest" });
};

// What only some operations take is shown with them.
const showFields = () => {
    document.getElementById("try-it-patient").hidden = form.elements.operation.value.startsWith("GET ");
};
form.addEventListener("change", showFields);
showFields();

form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (isSending) {
        return;
    }
    isSending = true;
    try {
        await send();
    } catch (error) {
        status.textContent = `There was no answer: ${error.message}`;
    } finally {
        isSending = false;
    }
});
