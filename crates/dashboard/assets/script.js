// Makes the pages nicer where scripts run. Without it, everything but the copy buttons works.
"use strict";

// What a form leads to is not sent again when the page is visited again or reloaded: its address is opened instead.
history.replaceState(history.state, "", location.href);

// A page that "Back" brings back as it was may belong to a session that has ended since.
addEventListener("pageshow", (event) => {
    if (event.persisted) {
        document.documentElement.hidden = true;
        location.reload();
    }
});

// How long ago, with the exact moment on hover.
const relative = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" });
const steps = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

for (const time of document.querySelectorAll("time[data-relative]")) {
    const seconds = (new Date(time.dateTime).getTime() - Date.now()) / 1000;
    const [unit, size] = steps.find(([, size]) => Math.abs(seconds) >= size) ?? steps.at(-1);
    time.title = time.textContent;
    time.textContent = relative.format(Math.trunc(seconds / size), unit);
}

for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
        const field = document.getElementById(button.dataset.copy);
        const message = document.getElementById(button.dataset.status ?? "copied");
        const select = () => field.select ? field.select() : getSelection().selectAllChildren(field);
        // Screen readers announce a text only when it changes.
        message.textContent = "";
        select();
        let isCopied = true;
        try {
            await navigator.clipboard.writeText(field.value ?? field.textContent.replaceAll("\u00a0", " "));
        } catch {
            // What is folded away can't be selected.
            field.closest("details")?.toggleAttribute("open", true);
            field.focus();
            select();
            isCopied = document.execCommand("copy");
        }
        setTimeout(() => { message.textContent = isCopied ? "Copied." : button.dataset.failed; }, 100);
    });
}

// Stops asking after ten minutes, so that a page left open does not ask for ever; the list of keys shows the first use.
for (const status of document.querySelectorAll("[data-first-use]")) {
    status.hidden = false;
    const end = Date.now() + 10 * 60 * 1000;
    let told = "";
    const ask = async () => {
        if (Date.now() > end) {
            status.textContent = told || status.dataset.gaveUp;
            return;
        }
        const answer = await fetch(status.dataset.firstUse, { redirect: "manual" }).catch(() => null);
        const found = answer?.ok ? await answer.json() : { text: "" };
        // Announced once, however often it is asked.
        if (found.text && found.text !== told) {
            status.textContent = told = found.text;
            status.dataset.outcome = found.outcome;
        }
        if (found.outcome === "accepted") {
            return;
        }
        // A member who was signed out will see that on the next page.
        if (!answer || answer.ok) {
            setTimeout(ask, 1500);
        }
    };
    ask();
}

// A field that counts for one choice alone is shown with it. Typing into it makes the choice; another choice clears it.
for (const part of document.querySelectorAll("[data-shown-for]")) {
    const choice = document.getElementById(part.dataset.shownFor);
    const field = part.querySelector("input");
    const show = () => { part.hidden = choice.value !== part.dataset.value && field.value === ""; };
    choice.addEventListener("change", () => {
        if (choice.value !== part.dataset.value) {
            field.value = "";
        }
        show();
    });
    field.addEventListener("input", () => { choice.value = part.dataset.value; });
    addEventListener("pageshow", show);
    show();
}

// A form is sent once, however often its button is pressed. Coming back to the page allows it again.
for (const form of document.querySelectorAll("form[method=post]")) {
    form.addEventListener("submit", (event) => {
        if (form.dataset.sent !== undefined) {
            event.preventDefault();
        }
        form.dataset.sent = "";
    });
    window.addEventListener("pageshow", () => delete form.dataset.sent);
}

// Buttons that do nothing without scripts are shown by them.
for (const button of document.querySelectorAll("button[data-print]")) {
    button.hidden = false;
    button.addEventListener("click", () => window.print());
}

// How many keys are marked is written on the buttons below them.
for (const button of document.querySelectorAll("button[data-marked]")) {
    const count = () => {
        const { length } = button.form.querySelectorAll("[name=key]:checked");
        button.textContent = `${button.dataset.marked} ${length || ""} marked key${length === 1 ? "" : "s"}`.replace("  ", " ");
    };
    button.form.addEventListener("change", count);
    addEventListener("pageshow", count);
    count();
}

// One stop of the Tab key for a long list: the arrow keys move between its rows.
for (const table of document.querySelectorAll(".keys table")) {
    const rows = [...table.tBodies[0].rows];
    const stops = (row) => [...row.querySelectorAll("th a, .by a, .more")].filter((stop) => stop.getClientRects().length > 0);
    const enter = (row) => {
        for (const other of rows) {
            stops(other).forEach((stop) => { stop.tabIndex = other === row ? 0 : -1; });
        }
    };
    if (rows.length <= 10) {
        continue;
    }
    table.querySelector(".arrows").hidden = false;
    table.setAttribute("aria-describedby", "arrows");
    enter(rows[0]);
    table.tBodies[0].addEventListener("focusin", (event) => enter(event.target.closest("tr")));
    table.tBodies[0].addEventListener("keydown", (event) => {
        const row = event.target.closest("tr");
        const menu = CSS.supports("selector(:popover-open)") && row.querySelector(":popover-open");
        if (menu && event.key === "ArrowDown" && !menu.contains(event.target)) {
            event.preventDefault();
            menu.querySelector("a, button").focus();
            return;
        }
        const next = rows[rows.indexOf(row) + ({ ArrowDown: 1, ArrowUp: -1 }[event.key] ?? NaN)];
        if (!next || event.target.closest("[popover]")) {
            return;
        }
        event.preventDefault();
        // The same in the next row, as far as it is there.
        const kind = event.target.matches(".more") ? ".more" : "th a";
        (stops(next).find((stop) => stop.matches(kind)) ?? stops(next)[0]).focus();
    });
}

// Where style sheets cannot put a menu below its button.
document.addEventListener("beforetoggle", (event) => {
    const button = document.querySelector(`[popovertarget="${event.target.id}"]`);
    if (event.newState !== "open" || !button || CSS.supports("position-area", "block-end")) {
        return;
    }
    const { right, bottom } = button.getBoundingClientRect();
    const { clientWidth } = document.documentElement;
    Object.assign(event.target.style, {
        position: "absolute", inset: `${bottom + scrollY}px ${clientWidth - right}px auto auto`, margin: "0",
    });
}, true);
