//! The routes of signing in and out, and of Account.

use crate::account::{
    choose_organisation, confirm, email, forgotten_password, name, page, passkeys, password, reset_password,
    second_factor, sessions, sign_in, sign_in_passkey, sign_in_provider,
};
use crate::page::router::Pages;

/// Adds the pages.
pub(crate) fn routes(pages: Pages) -> Pages {
    pages
        .get("/sign-in", sign_in::page)
        .post("/sign-in", sign_in::submit)
        .get("/sign-in/code", sign_in::code_page)
        .post("/sign-in/code", sign_in::submit_code)
        .post("/sign-in/code/passkey", sign_in_passkey::submit_as_code)
        .get("/sign-in/passkey", sign_in_passkey::page)
        .post("/sign-in/passkey", sign_in_passkey::begin)
        .post("/sign-in/passkey/use", sign_in_passkey::submit)
        .get("/sign-in/provider", sign_in_provider::begin)
        .get("/choose-organisation", choose_organisation::page)
        .post("/choose-organisation", choose_organisation::choose)
        .post("/sign-out", sign_in::sign_out)
        .get("/confirm-email/{token}", email::confirm_page)
        .post("/confirm-email/{token}", email::confirm_new)
        .get("/forgotten-password", forgotten_password::page)
        .post("/forgotten-password", forgotten_password::submit)
        .get("/reset-password/{token}", reset_password::page)
        .post("/reset-password/{token}", reset_password::submit)
        .get("/settings/confirm", confirm::page)
        .post("/settings/confirm", confirm::submit)
        .post("/settings/confirm/passkey", confirm::submit)
        .get("/settings/confirm/provider", sign_in_provider::begin_confirmation)
        .get("/settings/account", page::page)
        .get("/settings/account/provider", sign_in_provider::link_page)
        .get("/settings/account/name", name::page)
        .post("/settings/account/name", name::change)
        .get("/settings/account/email", email::page)
        .post("/settings/account/email", email::change)
        .get("/settings/account/password", password::page)
        .post("/settings/account/password", password::change)
        .get("/settings/account/second-factor", second_factor::page)
        .post("/settings/account/second-factor", second_factor::turn_on)
        .get("/settings/account/second-factor/turn-off", second_factor::confirm_turn_off)
        .post("/settings/account/second-factor/turn-off", second_factor::turn_off)
        .get("/settings/account/recovery-codes", second_factor::confirm_replace)
        .post("/settings/account/recovery-codes", second_factor::replace)
        .get("/settings/account/passkeys/new", passkeys::page)
        .post("/settings/account/passkeys/new", passkeys::add)
        .get("/settings/account/passkeys/{passkey}/remove", passkeys::ask_to_remove)
        .post("/settings/account/passkeys/{passkey}/remove", passkeys::remove)
        .get("/settings/account/sessions/end-others", sessions::ask_to_end_others)
        .post("/settings/account/sessions/end-others", sessions::end_others)
        .get("/settings/account/sessions/{session}/end", sessions::ask_to_end)
        .post("/settings/account/sessions/{session}/end", sessions::end)
}
