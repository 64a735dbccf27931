//! Settings → Policies: rules for all members and keys of the organisation.

use actix_web::{Scope, web};

pub(crate) mod key_age;
pub(crate) mod overview;
pub(crate) mod two_step_sign_in;

/// Adds the pages.
pub(crate) fn routes(pages: Scope) -> Scope {
    pages
        .route("/settings/policies", web::get().to(overview::policies))
        .route("/settings/policies/key-age", web::get().to(key_age::page))
        .route("/settings/policies/key-age", web::post().to(key_age::limit))
        .route("/settings/policies/require-two-step-sign-in", web::get().to(two_step_sign_in::confirm_require))
        .route("/settings/policies/require-two-step-sign-in", web::post().to(two_step_sign_in::require))
        .route(
            "/settings/policies/stop-requiring-two-step-sign-in",
            web::get().to(two_step_sign_in::confirm_stop_requiring),
        )
        .route("/settings/policies/stop-requiring-two-step-sign-in", web::post().to(two_step_sign_in::stop_requiring))
}
