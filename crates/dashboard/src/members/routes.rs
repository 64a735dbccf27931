//! The routes of Members, and of joining.

use crate::members::{
    end_sessions, invitation, invitation_provider, invite, list, member, remove, reset_password, reset_second_factor,
    role, withdraw_invitation,
};
use crate::page::router::Pages;

/// Adds the pages.
pub(crate) fn routes(pages: Pages) -> Pages {
    pages
        .get("/invitations/{token}", invitation::page)
        .post("/invitations/{token}", invitation::submit)
        .get("/invitations/{token}/provider", invitation_provider::begin)
        .get("/settings/members", list::page)
        .get("/settings/members/invite", invite::form)
        .post("/settings/members/invite", invite::invite)
        .get("/settings/members/{member}", member::page)
        .get("/settings/members/{member}/end-sessions", end_sessions::ask)
        .post("/settings/members/{member}/end-sessions", end_sessions::end)
        .get("/settings/members/{member}/remove", remove::ask)
        .post("/settings/members/{member}/remove", remove::remove)
        .get("/settings/members/{member}/role", role::page)
        .post("/settings/members/{member}/role", role::change)
        .get("/settings/members/{member}/reset-password", reset_password::ask)
        .post("/settings/members/{member}/reset-password", reset_password::create)
        .get("/settings/members/{member}/reset-second-factor", reset_second_factor::ask)
        .post("/settings/members/{member}/reset-second-factor", reset_second_factor::reset)
        .get("/settings/members/invitations/{invitation}/resend", invite::ask_again)
        .post("/settings/members/invitations/{invitation}/resend", invite::again)
        .get("/settings/members/invitations/{invitation}/withdraw", withdraw_invitation::confirm)
        .post("/settings/members/invitations/{invitation}/withdraw", withdraw_invitation::withdraw)
}
