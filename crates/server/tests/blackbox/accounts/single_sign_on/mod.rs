//! Single sign-on: signing in, joining and confirming by a provider that the test makes up.

mod dishonest_provider;
mod guessed_codes;
pub(crate) mod made_up_provider;
mod real_provider;

use diesel::connection::SimpleConnection;
use intake_edge as edge;
use intake_test_support::{Response, request, wait_for};
use serde_json::json;

use crate::fixtures::{Member, PASSWORD, TestApp, cookie, form_token, post, unconfirm};
use made_up_provider::{MadeUpProvider, begin, come_back};

#[track_caller]
pub(crate) fn assert_signed_in(answer: &Response) {
    assert_eq!((answer.status, answer.header("location")), (303, Some("/settings/api-keys")), "{}", answer.text());
    assert!(answer.all("set-cookie").iter().any(|cookie| cookie.contains("__Host-intake-session=")));
}

/// The member that an answer has signed in.
pub(crate) fn signed_in(app: &TestApp, answer: &Response) -> Member {
    assert_signed_in(answer);
    Member::signed_in(app.service.client(), answer)
}

#[test]
fn a_member_signs_in_whatever_the_case_of_the_address_and_the_log_and_the_sessions_tell() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    provider.member(&app, "ann@clinic.example");
    let page = app.service.client().send(&request("GET", "/sign-in?next=/settings/members", &[], b"")).text();
    assert!(page.contains("Sign in with Harbour Login"), "{page}");
    assert!(page.contains("href=\"/sign-in/provider?next=%2Fsettings%2Fmembers\""), "{page}");
    let answer = provider.go(&app, "/sign-in/provider?next=/settings/members", "", "Ann@Clinic.example");
    assert_eq!(answer.header("location"), Some("/settings/members"), "{}", answer.text());
    let ann = Member::signed_in(app.service.client(), &answer);
    assert!(ann.get("/settings/account").text().contains(", by single sign-on"));
    let activity = ann.get("/settings/activity").text();
    assert!(activity.contains("signed in by single sign-on as"), "{activity}");
    // What the provider was asked for, and by whom.
    let asked = provider.plan().asked.concat();
    assert!(asked.contains("code_verifier=") && asked.contains("grant_type=authorization_code"), "{asked}");
    let round = begin(&app, "/sign-in/provider", "");
    for part in ["scope=openid+email+profile", "code_challenge_method=S256", "response_type=code", "client_id=intake"] {
        assert!(round.address.contains(part), "{part}: {}", round.address);
    }
    assert!(!round.address.contains("prompt="), "who is signed in there need not type anything");
}

#[test]
fn an_unknown_address_gets_a_page_that_says_whom_to_ask() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let refused = provider.sign_in(&app, "nobody@clinic.example");
    assert_eq!(refused.status, 403);
    let page = refused.text();
    assert!(page.contains("No account for nobody@clinic.example"), "{page}");
    assert!(page.contains("ask an administrator at your organisation for an invitation"), "{page}");
    assert_eq!(app.database.count("members"), 0);
    assert!(
        begin(&app, "/sign-in/provider?anew=yes", "").address.contains("prompt=login"),
        "another person can sign in"
    );
}

#[test]
fn two_step_sign_in_is_asked_for_as_after_a_password() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let secret = provider.member(&app, "ann@clinic.example").turn_on_second_factor();
    let waiting = provider.sign_in(&app, "ann@clinic.example");
    assert_eq!(waiting.header("location"), Some("/sign-in/code"), "{}", waiting.text());
    let page =
        app.service.client().send(&request("GET", "/sign-in/code", &[("Cookie", &cookie(&waiting))], b"")).text();
    let form = format!("form_token={}&code={}", form_token(&page), secret.code_at(edge::now()));
    let answer = post(&app.service.client(), "/sign-in/code", &[("Cookie", &cookie(&waiting))], &form);
    let ann = signed_in(&app, &answer);
    assert!(ann.get("/settings/account").text().contains(", by single sign-on"));
    assert!(ann.get("/settings/activity").text().contains("signed in by single sign-on as"));
}

#[test]
fn a_guest_joins_without_a_password_under_the_name_that_the_provider_tells() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let invitation = app.invite("ann@clinic.example");
    let page = app.service.client().send(&request("GET", &invitation, &[], b"")).text();
    assert!(page.contains("Join with Harbour Login"), "{page}");
    let by = format!("{invitation}/provider");
    let other = provider.go(&app, &by, "", "bob@clinic.example");
    assert!(other.status == 403 && other.text().contains("It is for ann@clinic.example"), "{}", other.text());
    assert_eq!(app.database.count("members"), 0);
    let ann = signed_in(&app, &provider.go(&app, &by, "", "ANN@clinic.example"));
    assert!(ann.get("/settings/account").text().contains("Ann Chovy"));
    assert_eq!(app.database.count("members WHERE password_hash IS NULL"), 1);
    assert_eq!(provider.go(&app, &by, "", "ann@clinic.example").status, 404, "an invitation is used once");

    // The same account for another organisation.
    let other = app.other_clinic();
    let invitation = app.invite_into(&other, "ann@clinic.example");
    let joined = provider.go(&app, &format!("{invitation}/provider"), "", "ann@clinic.example");
    assert_signed_in(&joined);
    assert_eq!((app.database.count("members"), app.database.count("memberships")), (1, 2));

    // Another person of that name gets their address for a name.
    let invitation = app.invite("ann.chovy@clinic.example");
    let joined = provider.go(&app, &format!("{invitation}/provider"), "", "ann.chovy@clinic.example");
    assert!(
        signed_in(&app, &joined).get("/settings/account").text().contains("<dt>Name</dt><dd>ann.chovy@clinic.example")
    );
}

/// As long as nobody proves an address, anyone can have an account under it, which keeps its owner out of nothing.
#[test]
fn an_account_with_an_unproved_address_is_not_joined_with_and_one_person_can_link_several() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let planted = app.member("ann@clinic.example");
    assert_eq!(provider.sign_in(&app, "ann@clinic.example").status, 403);
    let other = app.other_clinic();
    let invitation = app.invite_into(&other, "ann@clinic.example");
    assert_signed_in(&provider.go(&app, &format!("{invitation}/provider"), "", "ann@clinic.example"));
    assert_eq!((app.database.count("members"), app.database.count("memberships")), (2, 2));
    assert_signed_in(&provider.sign_in(&app, "ann@clinic.example"));

    // The first account is hers, too, as it turns out: she knows its password.
    let page = planted.get("/settings/account").text();
    assert!(page.contains("<strong>Not linked.</strong>"), "{page}");
    let linked = provider.link(&app, &planted, "ann@clinic.example");
    assert_eq!(linked.header("location"), Some("/settings/account"), "{}", linked.text());
    let several = provider.sign_in(&app, "ann@clinic.example");
    assert_eq!(several.status, 200);
    let page = several.text();
    let link = page.split("href=\"").find(|rest| rest.starts_with("/sign-in/provider?organisation=")).unwrap();
    let link = link.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
    assert_signed_in(&provider.go(&app, &link, "", "ann@clinic.example"));
}

#[test]
fn a_member_confirms_by_signing_in_anew_and_with_a_second_factor_by_a_code_as_well() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let invitation = app.invite("ann@clinic.example");
    let mut ann = signed_in(&app, &provider.go(&app, &format!("{invitation}/provider"), "", "ann@clinic.example"));
    let ask = "/settings/confirm?next=/settings/account/second-factor";
    let page = ann.get(ask).text();
    assert!(page.contains("Confirm with Harbour Login") && !page.contains("Your password"), "{page}");
    let from = "/settings/confirm/provider?next=/settings/account/second-factor";
    let round = begin(&app, from, &ann.cookie);
    assert!(round.address.contains("prompt=login") && round.address.contains("max_age=0"), "{}", round.address);
    let now = edge::now().unix_timestamp();
    for (claim, value) in [("auth_time", json!(now - 200)), ("auth_time", json!(null)), ("sub", json!("bob"))] {
        let round = begin(&app, from, &ann.cookie);
        let mut claims = provider.truth("ann@clinic.example", &round);
        claims[claim] = value;
        provider.plan().claims = claims;
        let refused = come_back(&app, &round, &ann.cookie);
        assert_eq!(refused.status, 403, "{claim}");
    }
    assert_eq!(ann.get("/settings/account/second-factor").status, 303, "nothing is confirmed yet");
    let confirmed = provider.go(&app, from, &ann.cookie, "ann@clinic.example");
    assert_eq!(confirmed.header("location"), Some("/settings/account/second-factor"), "{}", confirmed.text());
    ann.go_on(&confirmed);
    let secret = ann.turn_on_second_factor();

    unconfirm(&app);
    let half = provider.go(&app, from, &ann.cookie, "ann@clinic.example");
    assert!(half.header("location").unwrap().starts_with("/settings/confirm?"), "{}", half.text());
    assert_eq!(ann.get("/settings/account/recovery-codes").status, 303, "the code is missing");
    let page = ann.get(ask).text();
    assert!(page.contains("Now enter your code") && !page.contains("Your password"), "{page}");
    assert_eq!(ann.post("/settings/confirm", "code=000000").status, 422);
    let code = secret.code_at(edge::now());
    let confirmed = ann.post("/settings/confirm", &format!("code={code}"));
    assert_eq!(confirmed.status, 303);
    ann.go_on(&confirmed);
    assert_eq!(ann.get("/settings/account/recovery-codes").status, 200);

    // A code without the provider, or long after it, confirms nothing.
    unconfirm(&app);
    let ages = "UPDATE sessions SET provider_confirmed_at = now() - interval '11 minutes'";
    app.database.connect().batch_execute(ages).unwrap();
    let code = secret.code_at(edge::now() + time_step());
    assert_eq!(ann.post("/settings/confirm", &format!("code={code}")).status, 422);
    assert_eq!(ann.get("/settings/account/recovery-codes").status, 303);
}

#[test]
fn confirming_by_the_provider_makes_the_invitation_that_was_asked_for() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let mut ann = provider.member(&app, "ann@clinic.example");
    let invitations = |email: &str| app.database.count(&format!("invitations WHERE email = '{email}'"));
    let ask = |ann: &Member, email: &str| {
        unconfirm(&app);
        let form = format!("email={}&role=administrator", email.replace('@', "%40"));
        let interrupted = ann.post("/settings/members/invite", &form);
        let draft = interrupted.all("set-cookie").iter().find(|cookie| cookie.contains("-draft=")).unwrap().to_string();
        (
            format!("{}; {}", ann.cookie, draft.split(';').next().unwrap()),
            interrupted.header("location").unwrap().to_owned(),
        )
    };
    let from = "/settings/confirm/provider?next=%2Fsettings%2Fmembers%2Finvite";
    let (cookies, _) = ask(&ann, "sam@clinic.example");
    let round = begin(&app, from, &cookies);
    provider.plan().claims = provider.truth("bob@clinic.example", &round);
    assert_eq!((come_back(&app, &round, &cookies).status, invitations("sam@clinic.example")), (403, 0));
    let made = provider.go(&app, from, &cookies, "ann@clinic.example");
    assert!(made.status == 200 && made.text().contains("Invitation for sam@clinic.example"), "{}", made.text());
    assert!(made.all("set-cookie").iter().any(|cookie| cookie.contains("-draft=;")), "the draft is carried out");
    assert_eq!(invitations("sam@clinic.example"), 1);
    ann.go_on(&made);

    // With a second factor, its code completes the confirmation.
    let secret = ann.turn_on_second_factor();
    let (cookies, confirm) = ask(&ann, "max@clinic.example");
    let half = provider.go(&app, from, &cookies, "ann@clinic.example");
    assert_eq!((half.header("location"), invitations("max@clinic.example")), (Some(confirm.as_str()), 0));
    let page = ann.client.send(&request("GET", &confirm, &[("Cookie", &cookies)], b"")).text();
    assert!(page.contains("Confirm to invite max@clinic.example") && page.contains("Now enter your code"), "{page}");
    let code = secret.code_at(edge::now());
    let form = format!("email=max%40clinic.example&role=administrator&code={code}");
    let made = ann.post("/settings/members/invite", &form);
    assert!(made.status == 200 && made.text().contains("Invitation for max@clinic.example"), "{}", made.text());
    assert_eq!(invitations("max@clinic.example"), 1);
}

fn time_step() -> std::time::Duration {
    std::time::Duration::from_secs(30)
}

#[test]
fn a_member_who_was_removed_does_not_get_in_and_one_who_changed_the_address_does() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let ada = provider.member_with_password(&app, "ada@clinic.example");
    provider.member(&app, "ann@clinic.example");
    assert_signed_in(&provider.sign_in(&app, "ann@clinic.example"));
    let removed = ada.confirm(&ada.page_about("Ann Chovy", "remove"));
    assert_eq!(removed.status, 303, "{}", removed.text());
    assert_eq!(provider.sign_in(&app, "ann@clinic.example").status, 403);
    let change = format!("email=ada.lovelace%40clinic.example&{}", crate::fixtures::password_field(PASSWORD));
    let changed = ada.post("/settings/account/email", &change);
    assert_eq!(changed.status, 303, "{}", changed.text());
    // The person is the same, and the new address, which nobody has proved, is nobody's.
    assert_signed_in(&provider.sign_in(&app, "ada@clinic.example"));
    assert_eq!(provider.sign_in(&app, "ada.lovelace@clinic.example").status, 403);
}

#[test]
fn without_single_sign_on_there_is_nothing_of_it() {
    let app = TestApp::start();
    let page = app.service.client().send(&request("GET", "/sign-in", &[], b"")).text();
    assert!(!page.contains("Sign in with"), "{page}");
    for path in ["/sign-in/provider", "/sign-in/provider/return?code=x&state=y"] {
        let answer = app.service.client().send(&request("GET", path, &[("Accept", "text/html")], b""));
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[test]
fn a_member_without_a_password_can_get_one_by_a_reset_link() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let invitation = app.invite("ann@clinic.example");
    assert_signed_in(&provider.go(&app, &format!("{invitation}/provider"), "", "ann@clinic.example"));
    let sign_in = |password: &str| {
        let form = format!("email=ann%40clinic.example&{}", crate::fixtures::password_field(password));
        post(&app.service.client(), "/sign-in", &[], &form).status
    };
    for password in ["", PASSWORD] {
        assert_eq!(sign_in(password), 401);
    }
    let reset = app.reset_password("ann@clinic.example");
    let done = post(&app.service.client(), &reset, &[], &crate::fixtures::password_field(PASSWORD));
    assert_eq!(done.status, 303, "{}", done.text());
    wait_for("the password", || sign_in(PASSWORD) == 303);
    assert_signed_in(&provider.sign_in(&app, "ann@clinic.example"));
}

#[test]
fn a_member_without_a_password_is_asked_for_none_to_change_the_email() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let ann = provider.member(&app, "ann@clinic.example");
    let account = ann.get("/settings/account").text();
    assert!(account.contains("Change password") && !account.contains("Change email"), "{account}");
    let page = ann.get("/settings/account/email");
    assert!(page.status == 403 && page.text().contains("can&#39;t check a new address"), "{}", page.text());
    let change = format!("email=ann.chovy%40clinic.example&{}", crate::fixtures::password_field(PASSWORD));
    assert_eq!(ann.post("/settings/account/email", &change).status, 403);

    assert_eq!(
        ann.post("/settings/account/password", &format!("new_{}", crate::fixtures::password_field(PASSWORD))).status,
        303
    );
    assert!(ann.get("/settings/account").text().contains("Change email"));
    assert!(ann.get("/settings/account/email").text().contains("Your password"));
    let changed = ann.post("/settings/account/email", &change);
    assert_eq!(changed.status, 303, "{}", changed.text());
    assert_signed_in(&provider.sign_in(&app, "ann@clinic.example"));
}
