//! The routes of API keys.

use crate::api_keys::{
    channels, contact, create, created, first_steps, list, networks, note, pause, rename, replace, revoke, select,
    stop_all, usage,
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
        .get("/settings/api-keys/select", select::marking)
        .get("/settings/api-keys/selected", select::confirm)
        .post("/settings/api-keys/selected", select::change)
        .get("/settings/api-keys/stop-all", stop_all::confirm)
        .post("/settings/api-keys/stop-all", stop_all::stop)
        .post("/settings/api-keys/resume-stopped", stop_all::resume)
        .get("/settings/api-keys/{key}", usage::page)
        .get("/settings/api-keys/{key}/first-use", created::first_use)
        .get("/settings/api-keys/{key}/revoke", revoke::confirm)
        .post("/settings/api-keys/{key}/revoke", revoke::revoke)
        .get("/settings/api-keys/{key}/networks", networks::page)
        .post("/settings/api-keys/{key}/networks", networks::save)
        .get("/settings/api-keys/{key}/pause", pause::confirm)
        .post("/settings/api-keys/{key}/pause", pause::pause)
        .post("/settings/api-keys/{key}/resume", pause::resume)
        .get("/settings/api-keys/{key}/rename", rename::page)
        .post("/settings/api-keys/{key}/rename", rename::rename)
        .get("/settings/api-keys/{key}/note", note::page)
        .post("/settings/api-keys/{key}/note", note::write)
        .get("/settings/api-keys/{key}/contact", contact::form)
        .post("/settings/api-keys/{key}/contact", contact::write)
        .get("/settings/api-keys/{key}/replace", replace::page)
        .post("/settings/api-keys/{key}/replace", replace::submit)
}
