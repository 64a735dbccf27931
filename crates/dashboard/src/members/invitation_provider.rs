//! Accepting an invitation by single sign-on.

use actix_web::http::StatusCode;
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use intake_domain::{Identity, Invitation, MemberId, ProviderJoinError, SignIn, Token, join_by_provider};
use intake_edge as edge;

use crate::account::provider::{Errand, explain, leave};
use crate::account::sign_in::{code_needed, signed_in_under};
use crate::mails::Mails;
use crate::metrics::{SignInOutcome, note_sign_in};
use crate::page::destination::Destination;
use crate::page::error::PageError;
use crate::page::part::{Members, shared};
use crate::page::visitor::origin;

pub(crate) async fn begin(request: HttpRequest, token: Path<String>) -> Result<HttpResponse, PageError> {
    let invitation = Token::parse(&token).ok_or(PageError::NoInvitation)?;
    leave(&request, &Errand::Join { invitation }).await
}

pub(crate) async fn join(
    request: &HttpRequest,
    identity: &Identity,
    token: &Token,
    errand: &Errand,
) -> Result<HttpResponse, PageError> {
    let members = shared::<dyn Members>(request)?;
    let (origin, email) = (origin(request), &identity.email);
    let invitation = members.invitation(&token.digest(), origin.at).await?.ok_or(PageError::NoInvitation)?;
    let (id, session) = (MemberId::random(edge::random()), Token::new(edge::random()));
    let joined = join_by_provider(members, members, identity, token, id, &session, origin).await;
    let refuse = |title: &str, text: &str| {
        note_sign_in(SignInOutcome::Refused);
        explain(StatusCode::FORBIDDEN, title, text, errand)
    };
    match joined {
        Ok((_, SignIn::CodeNeeded)) => Ok(code_needed(&Destination::default(), &session)),
        Ok((id, SignIn::Complete)) => {
            let Invitation { organisation_id, organisation_name, .. } = &invitation;
            let mails = shared::<Mails>(request)?;
            mails.new_administrator(members, *organisation_id, organisation_name, id).await;
            note_sign_in(SignInOutcome::SignedIn);
            Ok(signed_in_under(request, &session))
        }
        Err(ProviderJoinError::OtherAddress(invited)) => refuse(
            "This invitation is for someone else",
            &format!("It is for {invited}, and you signed in as {email}. Ask for an invitation to {email}."),
        ),
        Err(ProviderJoinError::NameTaken) => refuse(
            "Your name is taken",
            &format!(
                "Another member of {} has the name of your account. Sign in, change your name under Account, and open the \
                 invitation again.",
                invitation.organisation_name
            ),
        ),
        Err(ProviderJoinError::NoInvitation) => Err(PageError::NoInvitation),
        Err(ProviderJoinError::AccountChanged) => Err(PageError::Full),
        Err(ProviderJoinError::Store(error)) => Err(error.into()),
    }
}
