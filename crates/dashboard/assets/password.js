// A button below each password that shows what was typed. It is hidden again when the form is sent, so that browsers do
// not keep it among the texts they suggest.
"use strict";

for (const field of document.querySelectorAll("input[type=password]")) {
    const button = document.createElement("button");
    const show = (isShown) => {
        field.type = isShown ? "text" : "password";
        button.textContent = isShown ? "Hide password" : "Show password";
    };
    button.type = "button";
    button.className = "show";
    field.spellcheck = false;
    field.autocapitalize = "off";
    show(false);
    button.addEventListener("click", () => show(field.type === "password"));
    field.form.addEventListener("submit", () => show(false));
    field.after(button);
}
