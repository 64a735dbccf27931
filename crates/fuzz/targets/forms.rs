//! Any form posted to the dashboard, by a stranger or by a member: no panic, and no 500.
#![no_main]

use actix_web::test::TestRequest;
use intake_fuzz::{Application, session};
use libfuzzer_sys::fuzz_target;

const FORMS: [&str; 9] = [
    "/sign-in",
    "/sign-in/code",
    "/sign-out",
    "/invitations/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "/settings/api-keys",
    "/settings/api-keys/00000000-0000-0000-0000-000000000001/replace",
    "/settings/members",
    "/settings/account/second-factor",
    "/settings/account/sign-out-everywhere",
];

thread_local!(static APPLICATION: &'static Application = Application::start("127.0.0.0/8"));

fuzz_target!(|input: (u8, bool, bool, &[u8], &[u8])| {
    let (form, is_member, is_own, cookie, body) = input;
    let path = FORMS[usize::from(form) % FORMS.len()];
    let mut body = body.to_vec();
    if is_own {
        body.extend_from_slice(format!("&form_token={}", session().form_token()).as_bytes());
    }
    let mut request = TestRequest::post()
        .uri(path)
        .peer_addr("127.0.0.1:1".parse().expect("an address"))
        .insert_header(("X-Forwarded-Proto", "https"))
        .insert_header(("Content-Type", "application/x-www-form-urlencoded"))
        .set_payload(body);
    let member = format!("__Host-intake-session={}", session().expose());
    let cookie = if is_member { member.as_bytes() } else { cookie };
    if let Ok(cookie) = actix_web::http::header::HeaderValue::from_bytes(cookie) {
        request = request.insert_header(("Cookie", cookie));
    }
    APPLICATION.with(|application| {
        let status = application.status(request);
        assert!(!status.is_server_error(), "{path}: {status}");
    });
});
