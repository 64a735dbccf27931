//! An organisation limits the age of its keys: new and replaced keys end in time, and older ones are named.

use diesel::connection::SimpleConnection;
use time::Duration;

use crate::fixtures::{PASSWORD, TestApp, accept, confirm_identity, create_key, in_each_browser, service};

const PAGE: &str = "/settings/policies/key-age";
const ID: &str = "018f0000-0000-7000-8000-000000000000";
const TOO_LONG: &str = "Keys of your organisation must expire within 90 days.";

fn key_command(app: &TestApp, arguments: &[&str]) -> Result<String, String> {
    let all = [&["key"], arguments].concat();
    let output = all.iter().fold(service(&app.database), |command, argument| command.argument(argument)).run();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[test]
fn new_and_replaced_keys_end_within_the_limit_and_others_keep_their_end() {
    let app = TestApp::start();
    let mut ada = app.member("ada@clinic.example");
    let (endless, _) = app.clinic.key();
    assert_eq!(ada.confirm_identity(PASSWORD, "").status, 303);
    let answer = ada.post(PAGE, "days=90");
    assert!(
        ada.follow(&answer).contains("New keys must expire within 90 days. One key works longer and keeps its expiry.")
    );
    assert_eq!(app.database.count("api_keys WHERE expires_at IS NULL"), 1, "no silent end");
    assert_eq!(
        app.database.texts("SELECT subject FROM audit_entries WHERE action = 'key_age_limited'"),
        ["Test Clinic: no limit → 90 days"]
    );
    assert!(ada.get(PAGE).text().contains(&format!("/settings/api-keys/{endless}")), "it is named");
    assert!(ada.get("/settings/api-keys").text().contains("Works longer than 90 days"));

    let form = ada.get("/settings/api-keys/new").text();
    let latest = (intake_edge::now() + Duration::days(90)).date().to_string();
    assert!(form.contains(&format!("max=\"{latest}\"")) && form.contains("must expire within 90 days"), "{form}");
    assert!(
        form.contains("value=\"90\" selected") && !form.contains("value=\"never\"") && !form.contains("value=\"365\"")
    );
    let create = |lasts: &str, expires: &str| {
        ada.post("/settings/api-keys", &format!("id={ID}&name=Desk&lasts={lasts}&expires={expires}"))
    };
    for (lasts, expires) in [("never", ""), ("365", ""), ("91", ""), ("date", "2099-12-24"), ("", "")] {
        let refused = create(lasts, expires);
        assert!(refused.status == 422 && refused.text().contains(TOO_LONG), "{lasts} {expires}");
        assert!(refused.text().contains(&format!("value=\"{expires}\"")), "what was typed is kept");
    }
    let replacing = format!("/settings/api-keys/{endless}/replace");
    assert!(!ada.get(&replacing).text().contains("value=\"never\""));
    let refused = ada.post(&replacing, &format!("id={ID}&ends_after=24h&lasts=same"));
    assert!(refused.status == 422 && refused.text().contains(TOO_LONG), "{}", refused.text());
    assert_eq!(create("date", &latest).status, 200);
    assert_eq!(ada.post(&replacing, "id=018f0000-0000-7000-8000-000000000001&ends_after=24h&lasts=90").status, 200);
    assert_eq!(app.database.count("api_keys"), 3);

    let organisation = app.clinic.organisation.to_string();
    let listed = service(&app.database).argument("organisation").argument("list").run();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("Test Clinic  keys expire within 90 days"));
    let command = ["create", "--organisation", &organisation, "--name", "Desk"];
    let refused = key_command(&app, &command).unwrap_err();
    assert!(refused.contains("must expire within 90 days: give an earlier end with `--expires`"), "{refused}");
    let soon = (intake_edge::now() + Duration::days(80)).date().to_string();
    key_command(&app, &[&command[..], &["--expires", &soon]].concat()).unwrap();
    assert!(key_command(&app, &["replace", &endless.to_string()]).unwrap_err().contains("must expire within 90 days"));

    assert!(ada.follow(&ada.post(PAGE, "days=")).contains("New keys may last for ever."));
    key_command(&app, &command).unwrap();
}

#[test]
fn only_administrators_who_confirmed_limit_the_age_by_a_number_of_days() {
    let app = TestApp::start();
    let mut ada = app.member("ada@clinic.example");
    app.database.connect().batch_execute("UPDATE sessions SET confirmed_at = NULL").unwrap();
    assert_eq!((ada.get(PAGE).status, ada.post(PAGE, "days=90").status), (303, 303));
    assert_eq!(app.database.count("organisations WHERE key_days_max IS NOT NULL"), 0);
    assert_eq!(ada.confirm_identity(PASSWORD, "").status, 303);
    for wrong in ["0", "3651", "a+year", "-1", "1.5"] {
        let refused = ada.post(PAGE, &format!("days={wrong}"));
        let page = refused.text();
        assert!(refused.status == 422 && page.contains("Enter a number of days from 1 to 3650"), "{wrong}");
        assert!(page.contains(&format!("value=\"{}\"", wrong.replace('+', " "))), "{page}");
    }
    let invitation = ada.invite_as("grace@clinic.example", "key-manager");
    let client = app.service.client();
    let grace = crate::fixtures::Member::signed_in(app.service.client(), &accept(&client, &invitation, "Grace"));
    assert_eq!((grace.get(PAGE).status, grace.post(PAGE, "days=90").status), (403, 403));
    assert_eq!(app.database.count("organisations WHERE key_days_max IS NOT NULL"), 0);
}

#[test]
fn an_administrator_limits_the_age_with_and_without_scripts() {
    in_each_browser(|app, browser| {
        create_key(browser, "Front desk");
        app.database.connect().batch_execute("UPDATE sessions SET confirmed_at = NULL").unwrap();
        browser.open(&app.url("/settings/policies"));
        browser.press("Change longest life");
        confirm_identity(browser);
        browser.wait_for("Keys that exist keep their expiry.");
        browser.fill("Days", "30");
        browser.press("Save limit");
        browser.wait_for("New keys must expire within 30 days. One key works longer and keeps its expiry.");
        browser.press("API keys");
        browser.wait_for("Works longer than 30 days");
        browser.press("Front desk");
        browser.wait_for("Expires later than your organisation's limit of 30 days: replace it");
        browser.press("Replace");
        browser.press("Create replacement");
        browser.wait_for("won't be shown again");
        let new = "api_keys WHERE replaces IS NOT NULL AND expires_at < now() + interval '31 days'";
        assert_eq!(app.database.count(new), 1);
    });
}
