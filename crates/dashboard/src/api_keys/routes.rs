//! The routes of Settings → API keys.

use actix_web::{Scope, web};

use crate::api_keys::{create, created, first_steps, list, networks, note, pause, rename, replace, revoke, usage};

/// Adds the pages.
pub(crate) fn routes(pages: Scope) -> Scope {
    pages
        .route("/", web::get().to(list::home))
        .route("/settings", web::get().to(list::home))
        .route("/settings/first-steps", web::post().to(first_steps::hide))
        .route("/settings/api-keys", web::get().to(list::page))
        .route("/settings/api-keys", web::post().to(create::create))
        .route("/settings/api-keys/new", web::get().to(create::form))
        .route("/settings/api-keys/{key}", web::get().to(usage::page))
        .route("/settings/api-keys/{key}/first-use", web::get().to(created::first_use))
        .route("/settings/api-keys/{key}/revoke", web::get().to(revoke::confirm))
        .route("/settings/api-keys/{key}/revoke", web::post().to(revoke::revoke))
        .route("/settings/api-keys/{key}/networks", web::get().to(networks::page))
        .route("/settings/api-keys/{key}/networks", web::post().to(networks::save))
        .route("/settings/api-keys/{key}/pause", web::get().to(pause::confirm))
        .route("/settings/api-keys/{key}/pause", web::post().to(pause::pause))
        .route("/settings/api-keys/{key}/resume", web::post().to(pause::resume))
        .route("/settings/api-keys/{key}/rename", web::get().to(rename::page))
        .route("/settings/api-keys/{key}/rename", web::post().to(rename::rename))
        .route("/settings/api-keys/{key}/note", web::get().to(note::page))
        .route("/settings/api-keys/{key}/note", web::post().to(note::write))
        .route("/settings/api-keys/{key}/replace", web::get().to(replace::page))
        .route("/settings/api-keys/{key}/replace", web::post().to(replace::submit))
}
