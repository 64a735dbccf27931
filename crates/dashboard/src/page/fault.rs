//! The page of a fault within the frame of the other pages, for a reader who is signed in.

use actix_web::body::BoxBody;
use actix_web::dev::ServiceResponse;
use askama::Template;

use crate::page::cookie::SESSION;
use crate::page::error::PageError;
use crate::page::shell::Shell;
use crate::page::visitor::Onlooker;

#[derive(Template)]
#[template(path = "page/fault.html")]
struct FaultPage {
    shell: Shell,
    title: &'static str,
    text: &'static str,
}

/// Puts the page of a fault into the frame, if its reader is signed in.
pub(crate) async fn frame(response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let error = response.response().error().and_then(|error| error.as_error::<PageError>());
    let Some((title, text)) = error.and_then(PageError::title_and_text) else { return response };
    if SESSION.token(response.request().headers()).is_none() {
        return response;
    }
    // Without a session, or a database, the page stays as it is.
    let Ok(visitor) = Onlooker::find(response.request()).await else { return response };
    match (FaultPage { shell: Shell::new("", &visitor), title, text }).render() {
        Ok(page) => response.map_body(|_, _| BoxBody::new(page)),
        Err(_) => response,
    }
}
