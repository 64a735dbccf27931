//! The routes of Settings → Members, and of joining.

use actix_web::{Scope, web};

use crate::members::{
    end_sessions, invitation, invitation_provider, invite, list, member, remove, reset_password, reset_second_factor,
    role, withdraw_invitation,
};

/// Adds the pages.
pub(crate) fn routes(pages: Scope) -> Scope {
    pages
        .route("/invitations/{token}", web::get().to(invitation::page))
        .route("/invitations/{token}", web::post().to(invitation::submit))
        .route("/invitations/{token}/provider", web::get().to(invitation_provider::begin))
        .route("/settings/members", web::get().to(list::page))
        .route("/settings/members/invite", web::get().to(invite::form))
        .route("/settings/members/invite", web::post().to(invite::invite))
        .route("/settings/members/{member}", web::get().to(member::page))
        .route("/settings/members/{member}/end-sessions", web::get().to(end_sessions::ask))
        .route("/settings/members/{member}/end-sessions", web::post().to(end_sessions::end))
        .route("/settings/members/{member}/remove", web::get().to(remove::ask))
        .route("/settings/members/{member}/remove", web::post().to(remove::remove))
        .route("/settings/members/{member}/role", web::get().to(role::page))
        .route("/settings/members/{member}/role", web::post().to(role::change))
        .route("/settings/members/{member}/reset-password", web::get().to(reset_password::ask))
        .route("/settings/members/{member}/reset-password", web::post().to(reset_password::create))
        .route("/settings/members/{member}/reset-second-factor", web::get().to(reset_second_factor::ask))
        .route("/settings/members/{member}/reset-second-factor", web::post().to(reset_second_factor::reset))
        .route("/settings/members/invitations/{invitation}/resend", web::get().to(invite::ask_again))
        .route("/settings/members/invitations/{invitation}/resend", web::post().to(invite::again))
        .route("/settings/members/invitations/{invitation}/withdraw", web::get().to(withdraw_invitation::confirm))
        .route("/settings/members/invitations/{invitation}/withdraw", web::post().to(withdraw_invitation::withdraw))
}
