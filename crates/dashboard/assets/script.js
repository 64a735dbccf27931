// What makes the pages nicer where scripts run. Everything works without it, but for the copy buttons.
"use strict";

// Moments in the reader's own locale and time zone; the exact one on hover.
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const steps = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

const medium = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

for (const time of document.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    const parts = medium.formatToParts(at);
    const hour = parts.findIndex((part) => part.type === "hour");
    // A narrow column may break before the time of day, never within it.
    const exact = parts.map((part, index) => (index > hour ? part.value.replaceAll(" ", "\u00a0") : part.value)).join("");
    time.title = at.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
    if (time.dataset.relative === undefined) {
        time.textContent = exact;
        continue;
    }
    const seconds = (at.getTime() - Date.now()) / 1000;
    const [unit, size] = steps.find(([, size]) => Math.abs(seconds) >= size) ?? steps.at(-1);
    time.textContent = relative.format(Math.trunc(seconds / size), unit);
}

for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", async () => {
        const field = document.getElementById(button.dataset.copy);
        const told = document.getElementById("copied");
        // A text that stays as it is is not announced again.
        told.textContent = "";
        field.select();
        let isCopied = true;
        try {
            await navigator.clipboard.writeText(field.value);
        } catch {
            field.focus();
            field.select();
            isCopied = document.execCommand("copy");
        }
        setTimeout(() => { told.textContent = isCopied ? "Copied." : button.dataset.failed; }, 100);
    });
}

// Whoever is still there after ten minutes looks at the list; a page that was forgotten asks no more.
for (const place of document.querySelectorAll("[data-first-use]")) {
    const end = Date.now() + 10 * 60 * 1000;
    const ask = async () => {
        if (Date.now() > end) {
            place.textContent = place.dataset.gaveUp;
            return;
        }
        const answer = await fetch(place.dataset.firstUse, { redirect: "manual" }).catch(() => null);
        if (answer?.ok && (await answer.json()).used) {
            place.textContent = "First request received";
            return;
        }
        // Whoever was signed out is told so by the next page.
        if (!answer || answer.ok) {
            setTimeout(ask, 1500);
        }
    };
    ask();
}

// A form is sent once, however often its button is pressed. Coming back to the page makes it good again.
for (const form of document.querySelectorAll("form[method=post]")) {
    form.addEventListener("submit", (event) => {
        if (form.dataset.sent !== undefined) {
            event.preventDefault();
        }
        form.dataset.sent = "";
    });
    window.addEventListener("pageshow", () => delete form.dataset.sent);
}
