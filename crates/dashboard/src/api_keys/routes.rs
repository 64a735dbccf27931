//! The routes of API keys.

use crate::api_keys::key_text::Kind;
use crate::api_keys::{
    channels, create, created, first_steps, key_text, list, networks, pause, replace, revoke, select, stop_all, usage,
};
use crate::page::router::Pages;

/// Adds the pages.
pub(crate) fn routes(pages: Pages) -> Pages {
    pages
        .get("/", list::home)
        .get("/settings", list::home)
        .post("/settings/first-steps", first_steps::hide)
        .get("/settings/api-keys", list::page)
        .post("/settings/api-keys", create::create)
        .get("/settings/api-keys/new", create::form)
        .get("/settings/api-keys/channels", channels::channels)
        .get("/settings/api-keys/channels.csv", channels::download)
        .get("/settings/api-keys/select", select::marking)
        .get("/settings/api-keys/selected", select::confirm)
        .post("/settings/api-keys/selected", select::change)
        .get("/settings/api-keys/stop-all", stop_all::confirm)
        .post("/settings/api-keys/stop-all", stop_all::stop)
        .post("/settings/api-keys/resume-stopped", stop_all::resume)
        .post("/settings/api-keys/resume-paused", stop_all::resume_paused)
        .get("/settings/api-keys/{key}", usage::page)
        .get("/settings/api-keys/{key}/first-use", created::first_use)
        .get("/settings/api-keys/{key}/revoke", revoke::confirm)
        .post("/settings/api-keys/{key}/revoke", revoke::revoke)
        .get("/settings/api-keys/{key}/networks", networks::page)
        .post("/settings/api-keys/{key}/networks", networks::save)
        .get("/settings/api-keys/{key}/pause", pause::confirm)
        .post("/settings/api-keys/{key}/pause", pause::pause)
        .post("/settings/api-keys/{key}/resume", pause::resume)
        .get("/settings/api-keys/{key}/rename", |own| key_text::page(Kind::Name, own))
        .post("/settings/api-keys/{key}/rename", |own, form, keys| key_text::write(Kind::Name, own, form, keys))
        .get("/settings/api-keys/{key}/note", |own| key_text::page(Kind::Note, own))
        .post("/settings/api-keys/{key}/note", |own, form, keys| key_text::write(Kind::Note, own, form, keys))
        .get("/settings/api-keys/{key}/contact", |own| key_text::page(Kind::Contact, own))
        .post("/settings/api-keys/{key}/contact", |own, form, keys| key_text::write(Kind::Contact, own, form, keys))
        .get("/settings/api-keys/{key}/replace", replace::page)
        .post("/settings/api-keys/{key}/replace", replace::submit)
}
