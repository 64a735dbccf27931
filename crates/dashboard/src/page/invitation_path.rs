//! The path of an invitation.

use intake_domain::Token;

/// Where a guest accepts an invitation.
#[must_use]
pub fn invitation_path(token: &Token) -> String {
    format!("/invitations/{}", token.expose())
}
