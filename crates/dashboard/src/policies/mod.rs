//! Policies: rules for all members and keys of the organisation.

pub(crate) mod key_age;
pub(crate) mod overview;
pub(crate) mod time_zone;
pub(crate) mod two_step_sign_in;

use crate::page::router::Pages;

/// Adds the pages.
pub(crate) fn routes(pages: Pages) -> Pages {
    pages
        .get("/settings/policies", overview::policies)
        .get("/settings/policies/key-age", key_age::page)
        .post("/settings/policies/key-age", key_age::limit)
        .get("/settings/policies/time-zone", time_zone::choose)
        .post("/settings/policies/time-zone", time_zone::change)
        .get("/settings/policies/require-two-step-sign-in", two_step_sign_in::confirm_require)
        .post("/settings/policies/require-two-step-sign-in", two_step_sign_in::require)
        .get("/settings/policies/stop-requiring-two-step-sign-in", two_step_sign_in::confirm_stop_requiring)
        .post("/settings/policies/stop-requiring-two-step-sign-in", two_step_sign_in::stop_requiring)
}
