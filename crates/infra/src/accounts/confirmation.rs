//! Whether what a sign-in, a confirmation or a change is based on still holds: decided within its transaction, with the
//! member's row locked. A change of a password or a second factor locks that row, too: either the change commits first
//! and this check fails, or this commits first and the change then ends its session.

use diesel::dsl::exists;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::result::Error;
use intake_domain::{
    Actor, AuditContext, CONFIRMATION_LIMIT, CONFIRMATION_PAGE_LIMIT, ConfirmError, Evidence, FirstStep, PasswordHash,
    Proof, Subject, TokenDigest,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::accounts::address::others_with;
use crate::accounts::proofs::{ProofOutcome, use_up};
use crate::accounts::row::{has_second_factor, is_address_proved};
use crate::diesel_errors::SessionEnded;
use crate::schema::{members, sessions};

/// Proofs with which a first step of a sign-in or a confirmation is compared.
#[derive(Queryable, Selectable)]
#[diesel(table_name = members)]
pub(crate) struct StoredProofs {
    password_hash: Option<String>,
    email_folded: String,
    #[diesel(select_expression = is_address_proved(), select_expression_type = is_address_proved)]
    is_address_proved: bool,
    provider_issuer: Option<String>,
    provider_subject: Option<String>,
}

impl StoredProofs {
    /// The hash of the password, if there is one.
    pub(crate) fn password(&self) -> Option<&str> {
        self.password_hash.as_deref()
    }

    /// Returns whether the account is still the one that was found by this.
    pub(crate) fn is_found_by(&self, first: &FirstStep) -> bool {
        match first {
            FirstStep::Password(hash) => self.password() == Some(hash.as_str()),
            FirstStep::Provider(subject, email) => {
                self.is_of(subject) || (!self.is_linked() && self.has_proved(&email.folded()))
            }
        }
    }

    /// Returns whether the account is linked to this person at the provider.
    pub(crate) fn is_of(&self, subject: &Subject) -> bool {
        let link = (self.provider_issuer.as_deref(), self.provider_subject.as_deref());
        link == (Some(&subject.issuer), Some(&subject.id))
    }

    /// Returns whether the account is linked to anybody at the provider.
    pub(crate) fn is_linked(&self) -> bool {
        self.provider_subject.is_some()
    }

    /// Returns whether this is the account's address, and was proved.
    fn has_proved(&self, email_folded: &str) -> bool {
        self.is_address_proved && self.email_folded == email_folded
    }

    /// Returns whether this is the account's address, and nobody has proved it.
    pub(crate) fn lacks_proof_of(&self, email_folded: &str) -> bool {
        !self.is_address_proved && self.email_folded == email_folded
    }

    /// Returns whether this hash has the salt that all accounts with the address share.
    pub(crate) fn has_salt_of(
        &self,
        connection: &mut PgConnection,
        member: Uuid,
        new: &PasswordHash,
    ) -> QueryResult<bool> {
        match self.password() {
            Some(hash) => Ok(PasswordHash::new(hash.to_owned()).has_salt_of(new)),
            None => Ok(others_with(connection, &self.email_folded, member)?.iter().all(|other| other.has_salt_of(new))),
        }
    }
}

/// Locks a member's row until the end of the transaction. None: the member was removed. Every transaction locks it
/// before rows of other tables about the member, so that no two wait for each other.
pub(crate) fn lock_member(connection: &mut PgConnection, member: Uuid) -> QueryResult<Option<StoredProofs>> {
    let row = members::table.find(member).select(StoredProofs::as_select());
    row.for_no_key_update().first(connection).optional()
}

/// Fails unless the session in which the member confirmed goes on, and the confirmation is recent. Locks the
/// member.
pub(crate) fn assert_confirmed(connection: &mut PgConnection, audit: &AuditContext) -> QueryResult<()> {
    let (Actor::Member { id, .. }, Some(session)) = (&audit.actor, &audit.confirmed_in) else { return Ok(()) };
    lock_member(connection, *id.as_uuid())?;
    let session = own_session(session, *id.as_uuid()).filter(sessions::confirmed_at.gt(audit.at - CONFIRMATION_LIMIT));
    let goes_on = diesel::select(exists(session)).get_result::<bool>(connection)?;
    if goes_on { Ok(()) } else { Err(session_ended()) }
}

/// Confirms who the member of a session is.
pub(crate) fn confirm(
    connection: &mut PgConnection,
    session: &TokenDigest,
    next: &TokenDigest,
    evidence: &Evidence,
    audit: &AuditContext,
) -> QueryResult<Result<(), ConfirmError>> {
    let Actor::Member { id, .. } = &audit.actor else { return Ok(Err(ConfirmError::NotEnough)) };
    let id = *id.as_uuid();
    connection.transaction(|connection| {
        let locked = lock_member(connection, id)?.ok_or_else(session_ended)?;
        if diesel::select(exists(own_session(next, id))).get_result::<bool>(connection)? {
            // By an earlier run that was committed and whose answer was lost.
            return Ok(Ok(()));
        }
        let own = own_session(session, id);
        let moments = own.select((sessions::confirmed_at, sessions::provider_confirmed_at));
        let moments: Option<(Option<OffsetDateTime>, Option<OffsetDateTime>)> = moments.first(connection).optional()?;
        let (confirmed_at, provider_confirmed_at) = moments.ok_or_else(session_ended)?;
        let has_factor = members::table.find(id).select(has_second_factor()).first::<bool>(connection)?;
        if has_factor && matches!(evidence, Evidence::Provider(subject) if locked.is_of(subject)) {
            diesel::update(own).set(sessions::provider_confirmed_at.eq(audit.at)).execute(connection)?;
            return Ok(Err(ConfirmError::NotEnough));
        }
        let is_page_open = provider_confirmed_at.is_some_and(|at| at > audit.at - CONFIRMATION_PAGE_LIMIT);
        let proof = match open_proof(evidence, &locked, has_factor, is_page_open, confirmed_at) {
            Ok(proof) => proof,
            Err(refused) => return Ok(Err(refused)),
        };
        match proof.map_or(Ok(ProofOutcome::UsedUp), |proof| use_up(connection, id, proof, audit.at))? {
            ProofOutcome::UsedUp => {}
            ProofOutcome::Wrong => return Ok(Err(ConfirmError::WrongFactor)),
            ProofOutcome::Locked => return Ok(Err(ConfirmError::Locked)),
        }
        let renewed = (sessions::token_digest.eq(next.as_bytes().as_slice()), sessions::confirmed_at.eq(audit.at));
        diesel::update(own).set(renewed).execute(connection).map(|_| Ok(()))
    })
}

/// The proof of a second factor that has to be used up, if the rest of the evidence holds.
fn open_proof(
    evidence: &Evidence,
    member: &StoredProofs,
    has_factor: bool,
    is_page_open: bool,
    confirmed_at: Option<OffsetDateTime>,
) -> Result<Option<Proof>, ConfirmError> {
    match evidence {
        Evidence::Password(hash, _) if member.password() != Some(hash.as_str()) => Err(ConfirmError::NotEnough),
        Evidence::Password(_, None) if has_factor => Err(ConfirmError::NotEnough),
        Evidence::Password(_, proof) => Ok(proof.filter(|_| has_factor)),
        Evidence::Provider(subject) if !member.is_of(subject) => Err(ConfirmError::WrongFactor),
        Evidence::Provider(_) => Ok(None),
        Evidence::AfterProvider(_) if !is_page_open => Err(ConfirmError::NotEnough),
        Evidence::AfterProvider(proof) => Ok(Some(*proof)),
        Evidence::Passkey { last_confirmed_at, .. } if confirmed_at != *last_confirmed_at => {
            Err(ConfirmError::WrongFactor)
        }
        Evidence::Passkey { passkey, .. } => Ok(Some(Proof::Passkey(*passkey))),
    }
}

#[diesel::dsl::auto_type]
fn own_session<'a>(session: &'a TokenDigest, member: Uuid) -> _ {
    let digest: &'a [u8] = session.as_bytes();
    sessions::table.find(digest).filter(sessions::member_id.eq(member))
}

pub(crate) fn session_ended() -> Error {
    Error::QueryBuilderError(SessionEnded.into())
}
