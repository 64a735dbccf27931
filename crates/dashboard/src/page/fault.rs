//! The page of a fault within the frame of the other pages, for a reader who is signed in, and the record of what was
//! refused to this reader.

use actix_web::HttpMessage;
use actix_web::body::BoxBody;
use actix_web::dev::ServiceResponse;
use askama::Template;
use intake_http::RequestId;

use crate::mails::Mails;
use crate::page::cookie::SESSION;
use crate::page::error::PageError;
use crate::page::part::shared;
use crate::page::shell::Shell;
use crate::page::visitor::Onlooker;
use crate::page::{refusal_records, refused};

#[derive(Template)]
#[template(path = "page/fault.html")]
struct FaultPage {
    shell: Shell,
    title: &'static str,
    text: &'static str,
}

/// Puts the page of a fault into the frame, if its reader is signed in.
pub(crate) async fn frame(response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let Some(error) = response.response().error().and_then(|error| error.as_error::<PageError>()) else {
        return response;
    };
    if error.cause().is_some() {
        let id = response.request().extensions().get::<RequestId>().cloned();
        let contact = shared::<Mails>(response.request()).ok().and_then(|mails| mails.contact.as_deref());
        let page = error.page(id.as_ref().map(RequestId::as_str), contact);
        return response.map_body(|_, _| BoxBody::new(page));
    }
    let Some((title, text)) = error.title_and_text() else { return response };
    let refusal = error.refusal();
    refusal.into_iter().for_each(refused::note);
    if SESSION.token(response.request().headers()).is_none() {
        return response;
    }
    // Without a session, or a database, the page stays as it is.
    let Ok(visitor) = Onlooker::find(response.request()).await else { return response };
    refusal.into_iter().for_each(|refusal| refusal_records::record_later(response.request(), &visitor, refusal));
    match (FaultPage { shell: Shell::new("", &visitor), title, text }).render() {
        Ok(page) => response.map_body(|_, _| BoxBody::new(page)),
        Err(_) => response,
    }
}
