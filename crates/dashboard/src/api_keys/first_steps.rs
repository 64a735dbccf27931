//! What a new organisation has yet to do, above the list of its keys: it goes when all is done, or when a visitor hides
//! it in this browser.

use actix_web::{HttpRequest, HttpResponse};
use intake_domain::{KeyPage, MemberStore, Role};
use time::Duration;

use crate::api_keys::LIST;
use crate::api_keys::refusals::Cause;
use crate::page::cookie;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::notice::redirect_with_notice;
use crate::page::visitor::{Administrator, Visitor};

const COOKIE: &str = "__Host-intake-first-steps";
/// A year in this browser: longer than anybody takes over the first steps.
const HIDDEN_FOR: Duration = Duration::days(365);

/// A thing to do, and where.
pub(crate) struct Step {
    pub(crate) is_done: bool,
    pub(crate) text: String,
    pub(crate) link: String,
}

/// The steps, until all are done.
pub(crate) struct FirstSteps {
    pub(crate) steps: [Step; 4],
}

impl FirstSteps {
    pub(crate) fn done(&self) -> usize {
        self.steps.iter().filter(|step| step.is_done).count()
    }

    /// The first step that is to be done.
    pub(crate) fn next(&self) -> Option<&Step> {
        self.steps.iter().find(|step| !step.is_done)
    }
}

/// The steps. None: all are done, or the visitor does not want to see them.
pub(crate) async fn first_steps(
    request: &HttpRequest,
    visitor: &Visitor,
    keys: &KeyPage,
    members: &dyn MemberStore,
) -> Result<Option<FirstSteps>, PageError> {
    // Nobody else can invite people.
    if !visitor.signed_in.member.role.administers() || cookie::values(request.headers(), COOKIE).next().is_some() {
        return Ok(None);
    }
    let members = members.members(visitor.organisation()).await?;
    let administrators = members.iter().filter(|member| member.role == Role::Administrator).count();
    let me = visitor.signed_in.member.id;
    let step = |is_done, text: &str, link: &str| Step { is_done, text: text.to_owned(), link: link.to_owned() };
    let (waiting, waits_at) = first_patient(keys);
    let steps = [
        step(keys.total > 0, "Create a key for the vendor that will send patients", "/settings/api-keys/new"),
        step(keys.is_any_used, &waiting, &waits_at),
        step(
            administrators > 1,
            "Invite a second administrator, so you don't get locked out",
            "/settings/members/invite",
        ),
        step(
            members.iter().any(|member| member.id == me && member.has_second_factor),
            "Turn on two-step sign-in",
            "/settings/account/second-factor",
        ),
    ];
    Ok(Some(FirstSteps { steps }).filter(|steps| steps.next().is_some()))
}

/// The step that ends with the first accepted request, and where it leads.
fn first_patient(keys: &KeyPage) -> (String, String) {
    const TEXT: &str = "Wait for the vendor's first patient";
    let refused = keys.keys.iter().find_map(|key| Some((key.id, key.only_refused.as_ref()?)));
    let Some((id, refused)) = refused.filter(|_| !keys.is_any_used) else {
        let newest = keys.keys.iter().max_by_key(|key| key.created_at);
        return (TEXT.to_owned(), newest.map_or_else(|| "/help".to_owned(), |key| format!("{LIST}/{}", key.id)));
    };
    let Cause { words, .. } = Cause::from(refused);
    let why = if words.is_empty() { String::new() } else { format!(" ({words})") };
    (format!("{TEXT}: all were refused so far{why}"), format!("{LIST}/{id}"))
}

pub(crate) async fn hide(_: OwnForm<Administrator>) -> Result<HttpResponse, PageError> {
    let mut response = redirect_with_notice(LIST, "First steps are hidden in this browser.");
    cookie::add(&mut response, COOKIE, "hidden", HIDDEN_FOR);
    Ok(response)
}
