// Makes the documentation nicer where scripts run: a search within the page, tabs for languages, colours in code, buttons that
// copy, and sections that are folded on narrow screens. Without it, the table of contents and the browser's own search lead
// everywhere.
for (const part of document.querySelectorAll("[data-needs-script]")) {
    part.hidden = false;
}

// Each operation has a button that opens the form with it, where there is that form.
const tryForm = document.getElementById("try-it-form");
for (const row of tryForm === null ? [] : document.querySelectorAll("article tbody tr")) {
    const [name, method, path] = /^(GET|POST) \/api\/v1(\/\S+)/.exec(row.cells[0].textContent.trim()) ?? [];
    const choice = tryForm.querySelector(`[name=operation][value="${method} ${path}"]`);
    const section = document.getElementById(row.querySelector("td a")?.hash.slice(1));
    if (choice === null || section === null) {
        continue;
    }
    const operation = document.createElement("p");
    const code = document.createElement("code");
    const button = document.createElement("button");
    code.textContent = name;
    button.type = "button";
    button.className = "quiet";
    button.textContent = "Try";
    button.setAttribute("aria-label", `Try ${name}`);
    button.addEventListener("click", () => {
        choice.click();
        location.hash = "#try-it";
        document.getElementById("try-it-key").focus();
    });
    operation.className = "operation";
    operation.append(code, button);
    section.after(operation);
}

for (const block of document.querySelectorAll(".docs pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = "Copy";
    block.previousElementSibling.append(button);
    button.addEventListener("click", async () => {
        try {
            await navigator.clipboard.writeText(block.textContent);
            button.textContent = "Copied";
        } catch {
            getSelection().selectAllChildren(block);
            button.textContent = "Selected";
        }
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
}

// Colours: comments, texts, numbers and the words that most languages share.
const hashComments = new Set(["bash", "http", "php", "python", "ruby", "sh", "toml"]);
const words = "and|as|async|await|break|case|catch|class|const|continue|def|do|done|echo|else|esac|except|exit|export|fi|finally|fn"
    + "|for|from|func|function|go|if|import|in|let|local|loop|new|nil|not|null|or|package|private|public|range|require|rescue|return|static"
    + "|switch|then|throw|throws|true|false|try|type|unless|until|using|var|void|when|while|with|None|True|False";
for (const block of document.querySelectorAll(".docs pre[data-language]")) {
    const { language } = block.dataset;
    if (language === "") {
        continue;
    }
    const comment = hashComments.has(language) ? "(?<![$\\w{])#.*|(?<=^|\\s)//.*" : "//.*|/\\*[^]*?\\*/";
    const text = "\"(?:\\\\.|[^\"\\\\\\n])*\"|'(?:\\\\.|[^'\\\\\\n])*'|`[^`]*`";
    const pattern = new RegExp(`(?<comment>${comment})|(?<text>${text})|(?<number>(?<!\\w:)\\b[0-9][0-9_.]*\\b)|(?<word>\\b(?:${words})\\b)`, "gm");
    const code = block.firstElementChild;
    const source = code.textContent;
    const pieces = [];
    let end = 0;
    for (const match of source.matchAll(pattern)) {
        const [kind] = Object.entries(match.groups).find(([, value]) => value !== undefined);
        if (language === "json" && kind === "word") {
            continue;
        }
        const piece = document.createElement("span");
        piece.className = `code-${kind}`;
        piece.textContent = match[0];
        pieces.push(source.slice(end, match.index), piece);
        end = match.index + match[0].length;
    }
    code.replaceChildren(...pieces, source.slice(end));
}

// What belongs to one heading: everything up to the next one. Its parents are the headings above it.
const groups = [];
for (const section of document.querySelectorAll("article > section")) {
    const parents = [];
    for (const element of section.querySelectorAll(":scope > :not(.tabs), :scope > .tabs > *")) {
        if (/^H[2-6]$/.test(element.tagName)) {
            const level = Number(element.tagName[1]);
            while (parents.length > 0 && parents.at(-1).level >= level) {
                parents.pop();
            }
            const group = { level, heading: element, elements: [], parents: [...parents] };
            groups.push(group);
            parents.push(group);
        } else {
            groups.at(-1)?.elements.push(element);
        }
    }
}

// One tab for each language, the chosen one remembered.
const REMEMBERED = "docs-language";
const selectTabs = [];
const byName = [];
for (const frame of document.querySelectorAll(".tabs")) {
    const panels = groups.filter((group) => group.heading.parentElement === frame);
    const list = document.createElement("div");
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", "Language");
    const buttons = panels.map((group) => {
        const panel = document.createElement("div");
        panel.id = `${group.heading.id}-panel`;
        panel.className = "tab-panel";
        panel.setAttribute("role", "tabpanel");
        group.heading.before(panel);
        panel.append(group.heading, ...group.elements);
        const button = document.createElement("button");
        button.type = "button";
        button.setAttribute("role", "tab");
        button.setAttribute("aria-controls", panel.id);
        button.textContent = group.heading.textContent;
        panel.setAttribute("aria-label", button.textContent);
        list.append(button);
        return button;
    });
    const select = (chosen) => {
        buttons.forEach((button, index) => {
            const isChosen = index === chosen;
            button.setAttribute("aria-selected", isChosen);
            button.tabIndex = isChosen ? 0 : -1;
            panels[index].heading.parentElement.classList.toggle("tab-hidden", !isChosen);
        });
    };
    buttons.forEach((button, index) => {
        button.addEventListener("click", () => {
            byName.forEach((choose) => choose(button.textContent));
            localStorage.setItem(REMEMBERED, button.textContent);
        });
    });
    list.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step !== undefined) {
            const next = buttons.at((buttons.indexOf(document.activeElement) + step) % buttons.length);
            next.click();
            next.focus();
        }
    });
    frame.prepend(list);
    select(0);
    byName.push((name) => {
        const index = buttons.findIndex((button) => button.textContent === name);
        if (index >= 0) {
            select(index);
        }
    });
    byName.at(-1)(localStorage.getItem(REMEMBERED));
    selectTabs.push((target) => {
        const index = panels.findIndex((group) => group.heading.parentElement.contains(target));
        if (index >= 0) {
            select(index);
        }
    });
}

// On a narrow screen the page begins as a list of its sections, and the contents do not push the text out of sight.
const contents = document.getElementById("docs-toc");
const search = document.getElementById("docs-search");
const narrow = window.matchMedia("(max-width: 63.99rem)");
const folds = groups.filter((group) => group.level === 3).map((group) => {
    const fold = document.createElement("details");
    fold.className = "fold";
    const summary = document.createElement("summary");
    const inner = [];
    for (let next = group.heading.nextElementSibling; next !== null && !/^H[23]$/.test(next.tagName); next = next.nextElementSibling) {
        inner.push(next);
    }
    group.heading.before(fold);
    // A heading that folds is no link: not everyone can reach a control within a control.
    const link = group.heading.querySelector("a");
    link?.replaceWith(...link.childNodes);
    summary.append(group.heading);
    fold.append(summary, ...inner);
    return fold;
});
const fold = () => {
    contents.open = !narrow.matches;
    // A phone has no such keys, and no room for the label.
    search.placeholder = narrow.matches ? "Search" : "/ or Ctrl-K";
    for (const part of folds) {
        part.open = !narrow.matches;
    }
};
narrow.addEventListener("change", fold);
fold();
contents.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest("a") !== null) {
        contents.open = false;
    }
});

// Shows what is folded, or in another tab.
const reveal = (target) => {
    target?.closest("details.fold")?.setAttribute("open", "");
    selectTabs.forEach((select) => select(target));
};

const found = document.getElementById("docs-found");
const results = document.getElementById("docs-results");
const RESULTS_MAX = 8;

// A word is found where another one begins with it: "rate" is not in "generate".
const beginning = (word) => `(?<![a-z0-9])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`;

// What people call things that the text calls otherwise.
const SYNONYMS = {
    address: ["url"], authentication: ["authorization", "api key"], backoff: ["retry-after"], batch: ["several requests at a time"],
    birthdate: ["dateofbirth"], birthday: ["dateofbirth"], bulk: ["several requests at a time"], c: ["c#"], codes: ["status"],
    compression: ["content-encoding"], concurrency: ["several requests at a time"], cors: ["cross-origin"], csharp: ["c#"],
    dedup: ["duplicates"], delete: ["erased"], dob: ["dateofbirth"], dotnet: [".net"], duplicate: ["twice", "duplicates"],
    emoji: ["code points"], encoding: ["utf-8"], error: ["status"], errors: ["status"], gdpr: ["erased"], golang: ["go"],
    gzip: ["content-encoding"], idempotency: ["safe retry"], length: ["characters"], library: ["generate"], max: ["at most"], maximum: ["at most"],
    maxlength: ["at most"], mobile: ["phonenumber"], node: ["javascript"], openapi: ["generate"],
    postman: ["generate"], quota: ["rate"], ratelimit: ["rate"], retry: ["repeat", "safe retry"], rotate: ["replace"],
    sandbox: ["development"], sdk: ["generate"], support: ["ask for help", "ask the operator"], telephone: ["phonenumber"],
    throttle: ["rate"], throughput: ["several requests at a time"], timeout: ["time-out"], trim: ["trimmed"],
    typescript: ["javascript", "generate"], webhook: ["webhooks"], webhooks: ["webhooks"], zip: ["postcode"],
};
const spellings = (word) => [word, ...(Object.hasOwn(SYNONYMS, word) ? SYNONYMS[word] : [])];
const occurs = (word, text) => spellings(word).some((spelling) => new RegExp(beginning(spelling), "i").test(text));
const textOf = (elements) => elements.map((element) => element.textContent).join(" ");
const holdsAll = (elements, words) => {
    const text = textOf(elements);
    return words.every((word) => occurs(word, text));
};

// What is in a heading, or begins a row, is about it; elsewhere it is only mentioned.
const rank = (group, words) => {
    const rows = group.elements.flatMap((element) => [...element.querySelectorAll("tbody th")]);
    const text = textOf(group.elements);
    const points = words.map((word) => {
        const inHeading = occurs(word, group.heading.textContent) ? 100 : 0;
        const asWritten = new RegExp(beginning(word), "i").test(group.heading.textContent) ? 50 : 0;
        const inRow = rows.some((row) => occurs(word, row.textContent)) ? 20 : 0;
        const mentions = (text.match(new RegExp(spellings(word).map(beginning).join("|"), "gi")) ?? []).length;
        return inHeading + asWritten + inRow + Math.min(10, mentions);
    });
    const isHistory = group.parents.concat(group).some(({ heading }) => heading.id === "changelog");
    return points.reduce((sum, each) => sum + each, 0) - (isHistory ? 1000 : 0);
};

// The text around the first mention, as it is shown: with spaces between the cells of a table.
const SNIPPET = 140;
const snippet = (group, words) => {
    const text = group.elements.map((element) => element.innerText).join(" ").replace(/\s+/g, " ").trim();
    const at = text.search(new RegExp(words.flatMap(spellings).map(beginning).join("|"), "i"));
    const start = at > 40 ? text.lastIndexOf(" ", at - 40) + 1 : 0;
    const end = start + SNIPPET < text.length ? text.lastIndexOf(" ", start + SNIPPET) : text.length;
    const piece = document.createElement("p");
    piece.className = "hint";
    piece.textContent = `${start > 0 ? "… " : ""}${text.slice(start, end)}${end < text.length ? " …" : ""}`;
    mark(piece, words);
    return piece;
};

const clear = () => {
    for (const mark of document.querySelectorAll("article mark")) {
        const parent = mark.parentNode;
        mark.replaceWith(mark.textContent);
        parent.normalize();
    }
    for (const group of groups) {
        for (const element of [group.heading, ...group.elements]) {
            element.classList.remove("not-found");
        }
    }
    for (const other of document.querySelectorAll(".docs tr.not-found, .docs-side li.not-found")) {
        other.classList.remove("not-found");
    }
    found.textContent = "";
    results.replaceChildren();
};

const mark = (element, words) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) {
        if (walker.currentNode.parentElement.closest("form, button") === null) {
            texts.push(walker.currentNode);
        }
    }
    const pattern = new RegExp(words.flatMap(spellings).map(beginning).join("|"), "gi");
    for (const text of texts) {
        const pieces = [];
        let end = 0;
        for (const match of text.data.matchAll(pattern)) {
            const hit = document.createElement("mark");
            hit.textContent = match[0];
            pieces.push(text.data.slice(end, match.index), hit);
            end = match.index + match[0].length;
        }
        if (pieces.length > 0) {
            text.replaceWith(...pieces, text.data.slice(end));
        }
    }
};

// Of a table in which some rows hold everything, only those are shown.
const showRows = (element, words) => {
    for (const body of element.querySelectorAll("tbody")) {
        const rows = [...body.rows];
        const hits = rows.filter((row) => holdsAll([row], words));
        if (hits.length > 0) {
            rows.forEach((row) => row.classList.toggle("not-found", !hits.includes(row)));
        }
    }
};

const look = () => {
    clear();
    const words = search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    document.querySelector("article").classList.toggle("searched", words.length > 0);
    for (const part of folds) {
        part.open = words.length > 0 || !narrow.matches;
    }
    if (words.length === 0) {
        return;
    }
    const hits = new Set(groups.filter((group) => holdsAll([group.heading, ...group.elements], words)));
    const above = new Set([...hits].flatMap((group) => group.parents));
    for (const group of groups) {
        group.heading.classList.toggle("not-found", !hits.has(group) && !above.has(group));
        for (const element of group.elements) {
            element.classList.toggle("not-found", !hits.has(group));
        }
        if (hits.has(group)) {
            group.elements.forEach((element) => showRows(element, words));
            [group.heading, ...group.elements].forEach((element) => mark(element, words));
        }
    }
    for (const link of document.querySelectorAll("#docs-toc a")) {
        const heading = document.getElementById(link.hash.slice(1));
        link.parentElement.classList.toggle("not-found", heading?.classList.contains("not-found") ?? false);
    }
    const ranked = [...hits].sort((one, other) => rank(other, words) - rank(one, words));
    results.replaceChildren(...ranked.slice(0, RESULTS_MAX).map((group) => {
        const { heading, parents } = group;
        const link = document.createElement("a");
        link.href = `#${heading.id}`;
        link.textContent = [...parents.slice(1), { heading }].map((each) => each.heading.textContent).join(" › ");
        const item = document.createElement("li");
        item.append(link, snippet(group, words));
        return item;
    }));
    found.textContent = hits.size === 0
        ? "Nothing found. All words must occur in one section; Escape shows everything again."
        : `${hits.size} ${hits.size === 1 ? "section" : "sections"}${hits.size > RESULTS_MAX ? `, the best ${RESULTS_MAX} first` : ""}`;
};

search.addEventListener("input", look);
search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
        results.querySelector("a")?.click();
    } else if (event.key === "Escape") {
        search.value = "";
        look();
    }
});

// A link within the page may lead to what the search has hidden.
const showTarget = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (search.value !== "" && target !== null && target.offsetParent === null) {
        search.value = "";
        look();
    }
    if (target !== null) {
        reveal(target);
        target.scrollIntoView();
    }
};
showTarget();
window.addEventListener("hashchange", showTarget);
document.addEventListener("click", (event) => {
    // The address does not change when a link is followed twice.
    if (event.target.closest("a")?.hash === location.hash && location.hash !== "") {
        showTarget();
    }
});

// The contents mark the section that is read: the last one whose heading has passed the upper part of the window.
const side = document.querySelector(".docs-side");
const entries = [...contents.querySelectorAll("a")].map((link) => ({ link, heading: document.getElementById(link.hash.slice(1)) }));
const markSection = () => {
    const passed = entries.filter(({ heading }) => {
        const { top, height } = heading.getBoundingClientRect();
        return height > 0 && top < innerHeight / 4;
    });
    const { link } = passed.at(-1) ?? entries[0];
    if (link.ariaCurrent !== null) {
        return;
    }
    entries.forEach((entry) => entry.link.removeAttribute("aria-current"));
    link.setAttribute("aria-current", "true");
    const [outer, inner] = [side, link].map((one) => one.getBoundingClientRect());
    if (!narrow.matches && (inner.top < outer.top || inner.bottom > outer.bottom)) {
        side.scrollTop += inner.top - outer.top - outer.height / 2;
    }
};
let isPlanned = false;
addEventListener("scroll", () => {
    if (!isPlanned) {
        isPlanned = true;
        requestAnimationFrame(() => {
            isPlanned = false;
            markSection();
        });
    }
}, { passive: true });
markSection();

// As on other sites: / and Ctrl-K lead to the search.
document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select") !== null;
    const isSlash = event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (isSlash || (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey))) {
        event.preventDefault();
        search.focus();
        search.select();
    }
});
