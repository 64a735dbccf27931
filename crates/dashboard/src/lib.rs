//! Where the members of an organisation look after its API keys: HTML pages made by the server, which work without
//! scripts. Every asset is in the program; nothing is fetched from elsewhere.

mod account;
mod activity;
mod api_keys;
mod assets;
mod guard;
mod invitations;
mod key_list;
mod members;
mod moment;
mod page_error;
mod qr_code;
mod replace_key;
mod second_factor;
mod session_cookie;
mod shell;
mod sign_in;
mod throttle;
mod usage;
mod visitor;
mod withdraw_invitation;

use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, HttpResponse, ResponseError, web};

pub use throttle::Throttle;

use page_error::PageError;

/// Larger than any form here.
const FORM_MAX: usize = 16 * 1024;

/// The address that browsers and integrations know the service by, without a slash at its end.
#[derive(Clone, Debug)]
pub struct BaseUrl(pub String);

/// Adds the pages to an application, which must hold, as `web::Data`: a `dyn KeyStore`, a `dyn MemberStore`, a
/// `dyn SessionStore`, a `dyn AuditLog`, a `dyn PasswordHasher`, a `KeyFormat`, `TrustedProxies`, a `Throttle` and a
/// `BaseUrl`.
pub fn configure(application: &mut web::ServiceConfig) {
    let form = web::FormConfig::default().limit(FORM_MAX).error_handler(|_, _| PageError::BadForm.into());
    let pages = web::scope("")
        .wrap(from_fn(guard::guard))
        .app_data(form)
        .route("/", web::get().to(api_keys::home))
        .route("/sign-in", web::get().to(sign_in::page))
        .route("/sign-in", web::post().to(sign_in::submit))
        .route("/sign-in/code", web::get().to(sign_in::code_page))
        .route("/sign-in/code", web::post().to(sign_in::submit_code))
        .route("/sign-out", web::post().to(sign_in::sign_out))
        .route("/invitations/{token}", web::get().to(invitations::page))
        .route("/invitations/{token}", web::post().to(invitations::submit))
        .route("/settings/api-keys", web::get().to(key_list::page))
        .route("/settings/api-keys", web::post().to(api_keys::create))
        .route("/settings/api-keys/new", web::get().to(api_keys::form))
        .route("/settings/api-keys/{key}", web::get().to(usage::page))
        .route("/settings/api-keys/{key}/first-use", web::get().to(api_keys::first_use))
        .route("/settings/api-keys/{key}/revoke", web::get().to(api_keys::confirm_revoke))
        .route("/settings/api-keys/{key}/revoke", web::post().to(api_keys::revoke))
        .route("/settings/api-keys/{key}/replace", web::get().to(replace_key::page))
        .route("/settings/api-keys/{key}/replace", web::post().to(replace_key::submit))
        .route("/settings/members", web::get().to(members::list))
        .route("/settings/members", web::post().to(members::invite))
        .route("/settings/members/{member}/remove", web::get().to(members::confirm_remove))
        .route("/settings/members/{member}/remove", web::post().to(members::remove))
        .route("/settings/members/invitations/{invitation}/withdraw", web::get().to(withdraw_invitation::confirm))
        .route("/settings/members/invitations/{invitation}/withdraw", web::post().to(withdraw_invitation::withdraw))
        .route("/settings/activity", web::get().to(activity::page))
        .route("/settings/account", web::get().to(account::page))
        .route("/settings/account/second-factor", web::get().to(second_factor::page))
        .route("/settings/account/second-factor", web::post().to(second_factor::turn_on))
        .route("/settings/account/second-factor/turn-off", web::get().to(second_factor::confirm_turn_off))
        .route("/settings/account/second-factor/turn-off", web::post().to(second_factor::turn_off))
        .route("/settings/account/recovery-codes", web::get().to(second_factor::confirm_replace))
        .route("/settings/account/recovery-codes", web::post().to(second_factor::replace))
        .route("/settings/account/sign-out-everywhere", web::post().to(account::sign_out_everywhere))
        .route("/assets/{name}", web::get().to(assets::asset))
        .default_service(web::to(not_found));
    application.service(pages);
}

/// People get a page; programs that ask for nothing in particular get the interface's error.
async fn not_found(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let accept = request.headers().get(actix_web::http::header::ACCEPT).and_then(|value| value.to_str().ok());
    let is_page = accept.is_some_and(|accept| accept.contains("text/html")) && !request.path().starts_with("/api/");
    if is_page { PageError::NotFound.error_response() } else { intake_http::not_found(request, payload).await }
}
