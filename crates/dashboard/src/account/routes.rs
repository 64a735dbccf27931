//! The routes of signing in and out, and of Settings → Account.

use actix_web::{Scope, web};

use crate::account::{
    choose_organisation, confirm, email, forgotten_password, name, page, passkeys, password, reset_password,
    second_factor, sessions, sign_in, sign_in_passkey, sign_in_provider,
};

/// Adds the pages.
pub(crate) fn routes(pages: Scope) -> Scope {
    pages
        .route("/sign-in", web::get().to(sign_in::page))
        .route("/sign-in", web::post().to(sign_in::submit))
        .route("/sign-in/code", web::get().to(sign_in::code_page))
        .route("/sign-in/code", web::post().to(sign_in::submit_code))
        .route("/sign-in/code/passkey", web::post().to(sign_in_passkey::submit_as_code))
        .route("/sign-in/passkey", web::get().to(sign_in_passkey::page))
        .route("/sign-in/passkey", web::post().to(sign_in_passkey::begin))
        .route("/sign-in/passkey/use", web::post().to(sign_in_passkey::submit))
        .route("/sign-in/provider", web::get().to(sign_in_provider::begin))
        .route("/choose-organisation", web::get().to(choose_organisation::page))
        .route("/choose-organisation", web::post().to(choose_organisation::choose))
        .route("/sign-out", web::post().to(sign_in::sign_out))
        .route("/confirm-email/{token}", web::get().to(email::confirm_page))
        .route("/confirm-email/{token}", web::post().to(email::confirm_new))
        .route("/forgotten-password", web::get().to(forgotten_password::page))
        .route("/forgotten-password", web::post().to(forgotten_password::submit))
        .route("/reset-password/{token}", web::get().to(reset_password::page))
        .route("/reset-password/{token}", web::post().to(reset_password::submit))
        .route("/settings/confirm", web::get().to(confirm::page))
        .route("/settings/confirm", web::post().to(confirm::submit))
        .route("/settings/confirm/passkey", web::post().to(confirm::submit_passkey))
        .route("/settings/confirm/provider", web::get().to(sign_in_provider::begin_confirmation))
        .route("/settings/account", web::get().to(page::page))
        .route("/settings/account/provider", web::get().to(sign_in_provider::link_page))
        .route("/settings/account/name", web::get().to(name::page))
        .route("/settings/account/name", web::post().to(name::change))
        .route("/settings/account/email", web::get().to(email::page))
        .route("/settings/account/email", web::post().to(email::change))
        .route("/settings/account/password", web::get().to(password::page))
        .route("/settings/account/password", web::post().to(password::change))
        .route("/settings/account/second-factor", web::get().to(second_factor::page))
        .route("/settings/account/second-factor", web::post().to(second_factor::turn_on))
        .route("/settings/account/second-factor/turn-off", web::get().to(second_factor::confirm_turn_off))
        .route("/settings/account/second-factor/turn-off", web::post().to(second_factor::turn_off))
        .route("/settings/account/recovery-codes", web::get().to(second_factor::confirm_replace))
        .route("/settings/account/recovery-codes", web::post().to(second_factor::replace))
        .route("/settings/account/passkeys/new", web::get().to(passkeys::page))
        .route("/settings/account/passkeys/new", web::post().to(passkeys::add))
        .route("/settings/account/passkeys/{passkey}/remove", web::get().to(passkeys::ask_to_remove))
        .route("/settings/account/passkeys/{passkey}/remove", web::post().to(passkeys::remove))
        .route("/settings/account/sessions/end-others", web::get().to(sessions::ask_to_end_others))
        .route("/settings/account/sessions/end-others", web::post().to(sessions::end_others))
        .route("/settings/account/sessions/{session}/end", web::get().to(sessions::ask_to_end))
        .route("/settings/account/sessions/{session}/end", web::post().to(sessions::end))
}
