//! The entries of the audit log about what a member was refused.

use std::num::NonZeroU32;
use std::time::Duration;

use actix_web::HttpRequest;
use intake_domain::{Action, AuditLog, MemberId, RefusedAction};
use intake_http::TokenBuckets;

use crate::page::error::PageError;
use crate::page::part::{Part, shared};
use crate::page::refused::Refusal;
use crate::page::visitor::Visitor;

/// Between two entries about one member of one kind, on each instance: a member cannot fill the audit log.
const RECORD_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Limits the entries in the audit log.
pub(crate) struct RefusalRecords(TokenBuckets<(MemberId, &'static str)>);

impl RefusalRecords {
    pub(crate) fn new() -> Self {
        Self(TokenBuckets::new(RECORD_INTERVAL, NonZeroU32::MIN))
    }
}

/// Records what a member was refused, once it was answered. There are few such entries, so few of them wait.
pub(crate) fn record_later(request: &HttpRequest, visitor: &Visitor, refusal: Refusal) {
    let action = match refusal {
        Refusal::Role => Action::RoleRefused,
        Refusal::FormToken => Action::FormRefused,
        Refusal::CrossSite | Refusal::UnknownAddress | Refusal::UnknownAtProvider => return,
    };
    let (Ok(records), Ok(log)) = (shared::<RefusalRecords>(request), Part::<dyn AuditLog>::take(request)) else {
        return;
    };
    if records.0.take(&(visitor.signed_in.member.id, action.as_str())).wait.is_some() {
        return;
    }
    let route = format!("{} {}", request.method(), request.match_pattern().unwrap_or_default());
    let refused = RefusedAction { organisation: visitor.organisation(), action, route };
    let audit = visitor.audit();
    actix_web::rt::spawn(async move {
        if let Err(error) = log.note_refusal(&refused, &audit).await {
            let cause = PageError::from(error).cause().map(|cause| cause.to_string());
            tracing::warn!(cause, "a refused action could not be recorded");
        }
    });
}
