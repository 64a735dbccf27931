//! The path of an invitation.

use intake_domain::Token;

/// Returns where a guest accepts an invitation.
#[must_use]
pub fn invitation_path(token: &Token) -> String {
    format!("/invitations/{}", token.expose())
}
