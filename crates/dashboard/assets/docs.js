// Makes the documentation nicer where scripts run: a search within the page, and buttons that copy. Without it, the table of
// contents and the browser's own search lead everywhere.
for (const part of document.querySelectorAll("[data-needs-script]")) {
    part.hidden = false;
}

// On a narrow screen the contents would push the text out of sight.
const contents = document.getElementById("docs-toc");
const narrow = window.matchMedia("(max-width: 63.99rem)");
const fold = () => { contents.open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();

for (const block of document.querySelectorAll("article pre")) {
    const frame = document.createElement("div");
    frame.className = "code";
    block.replaceWith(frame);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = "Copy";
    frame.append(block, button);
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

// What belongs to one heading: everything up to the next one. Its parents are the headings above it.
const groups = [];
for (const section of document.querySelectorAll("article > section")) {
    const parents = [];
    for (const element of section.children) {
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

const search = document.getElementById("docs-search");
const found = document.getElementById("docs-found");

// A word is found where another one begins with it: "rate" is not in "generate".
const beginning = (word) => `(?<![a-z0-9])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`;

const holdsAll = (elements, words) => {
    const text = elements.map((element) => element.textContent).join(" ");
    return words.every((word) => new RegExp(beginning(word), "i").test(text));
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
};

const mark = (element, words) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) {
        if (walker.currentNode.parentElement.closest("form, button") === null) {
            texts.push(walker.currentNode);
        }
    }
    const pattern = new RegExp(words.map(beginning).join("|"), "gi");
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
    found.textContent = hits.size === 0
        ? "Nothing found. All words must occur in one section; Escape shows everything again."
        : `${hits.size} ${hits.size === 1 ? "section" : "sections"}`;
};

search.addEventListener("input", look);
search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
        document.querySelector("article mark")?.scrollIntoView({ block: "center" });
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
        target.scrollIntoView();
    }
};
window.addEventListener("hashchange", showTarget);
document.addEventListener("click", (event) => {
    // The address does not change when a link is followed twice.
    if (event.target.closest("a")?.hash === location.hash && location.hash !== "") {
        showTarget();
    }
});
