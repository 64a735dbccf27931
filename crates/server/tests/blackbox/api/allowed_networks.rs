//! A key with a list of networks is refused at once from elsewhere, on every instance, with the reason.

use diesel::connection::SimpleConnection;
use intake_domain::{ApiKey, KeyId};
use intake_test_support::{Browser, Response, Service, create_request, patient, wait_for};
use serde_json::{Value, json};

use crate::commands::organisations::{done, run};
use crate::fixtures::{TestApp, service};
use crate::{assert_unauthorised, patient_with};

const ELSEWHERE: &str = "error_description=\"The API key is not allowed from this address\"";

fn behind_a_proxy() -> TestApp {
    TestApp::start_with(|builder| builder.setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1"))
}

/// A request that a trusted proxy forwards for this address.
fn send_from(service: &Service, key: &ApiKey, address: &str, body: &str) -> Response {
    let headers = [("X-Forwarded-Proto", "https"), ("X-Forwarded-For", address)];
    service.plain_client().send(&create_request(key, &headers, body.as_bytes()))
}

fn networks_command(app: &TestApp, key: KeyId, arguments: &[&str]) -> Result<Value, String> {
    let id = key.to_string();
    let all = [&["key", "networks", &id], arguments, &["--json"]].concat();
    let output = all.iter().fold(service(&app.database), |command, argument| command.argument(argument)).run();
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).unwrap()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn assert_refused(answer: &Response) {
    assert_unauthorised(answer);
    assert!(answer.header("www-authenticate").unwrap().ends_with(ELSEWHERE), "{:?}", answer.header("www-authenticate"));
}

#[test]
fn a_key_is_refused_from_elsewhere_at_once_on_every_instance() {
    let app = behind_a_proxy();
    let second = service(&app.database).setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1").start();
    let (id, key) = app.clinic.key();
    let body = patient().to_string();
    let from = |service, address| send_from(service, &key, address, &body);
    for instance in [&app.service, &second] {
        assert_eq!(from(instance, "198.51.100.7").status, 201);
    }
    let set = networks_command(&app, id, &["--allow", "203.0.113.0/24,2001:db8::/32", "--reason", "office"]).unwrap();
    assert_eq!(set["allowedNetworks"], json!(["203.0.113.0/24", "2001:db8::/32"]));
    for instance in [&app.service, &second] {
        for address in ["203.0.113.9", "::ffff:203.0.113.9", "2001:db8::1", "203.0.113.9:1234", "[2001:db8::1]:443"] {
            assert_eq!(from(instance, address).status, 201, "{address}");
        }
        for address in ["198.51.100.7", "2001:db9::1", "203.0.113.9, 198.51.100.7", "nonsense"] {
            assert_refused(&from(instance, address));
            assert_refused(&send_from(instance, &key, address, "{"));
        }
        // No proxy ends TLS in front of this listener: the peer is 127.0.0.1.
        let claimed = [("X-Forwarded-For", "203.0.113.9")];
        assert_refused(&instance.create_with(&key, &claimed, body.as_bytes()));
    }
    assert_eq!(networks_command(&app, id, &["--allow", "any"]).unwrap()["allowedNetworks"], json!(["any"]));
    for instance in [&app.service, &second] {
        assert_eq!(from(instance, "198.51.100.7").status, 201);
    }
    assert_eq!(
        app.database.texts("SELECT subject FROM audit_entries WHERE action = 'key_networks_changed' ORDER BY at"),
        ["Test key: any → 203.0.113.0/24, 2001:db8::/32", "Test key: 203.0.113.0/24, 2001:db8::/32 → any"]
    );
    let metrics = app.service.probe("/metrics").text();
    assert!(metrics.contains("intake_keys_refused_total{reason=\"elsewhere\"} 9"), "{metrics}");
    wait_for("refusals", || {
        app.database.count("key_refusals WHERE reason = 'elsewhere' AND address = '198.51.100.7'") == 8
    });
}

/// The network of the proxy is allowed: whatever comes through it would be, if the proxy's address counted.
#[test]
fn a_client_whose_address_the_proxy_does_not_say_is_refused_where_networks_are_set() {
    let app = behind_a_proxy();
    let (id, key) = app.clinic.key();
    networks_command(&app, id, &["--allow", "127.0.0.0/8"]).unwrap();
    let body = patient().to_string();
    for address in ["127.0.0.1", "127.0.0.1:1234", "198.51.100.7, 127.0.0.1"] {
        assert_eq!(send_from(&app.service, &key, address, &body).status, 201, "{address}");
    }
    for address in ["", "garbage", "unknown", "198.51.100.7:1234", "127.0.0.1, ", "127.0.0.1:99999", "é"] {
        assert_refused(&send_from(&app.service, &key, address, &body));
    }
    let headers = [("X-Forwarded-Proto", "https")];
    assert_refused(&app.service.plain_client().send(&create_request(&key, &headers, body.as_bytes())));
    assert_eq!(app.patients(), 3);
    wait_for("refusals", || app.database.count("key_refusals WHERE reason = 'elsewhere' AND address IS NULL") == 7);
}

#[test]
fn a_safe_retry_from_elsewhere_learns_nothing_and_goes_on_from_an_allowed_network() {
    let app = behind_a_proxy();
    let (id, key) = app.clinic.key();
    let body = patient().to_string();
    let send = |address: &str| {
        let headers = [("X-Forwarded-Proto", "https"), ("X-Forwarded-For", address), ("Idempotency-Key", "once")];
        app.service.plain_client().send(&create_request(&key, &headers, body.as_bytes()))
    };
    let first = send("203.0.113.9");
    networks_command(&app, id, &["--allow", "203.0.113.9"]).unwrap();
    assert_refused(&send("198.51.100.7"));
    let again = send("203.0.113.9");
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(again.text(), first.text());
    assert_eq!(app.patients(), 1);
}

#[test]
fn commands_show_networks_and_refuse_what_is_none() {
    let app = behind_a_proxy();
    let (id, _) = app.clinic.key();
    assert_eq!(networks_command(&app, id, &[]).unwrap(), json!({ "id": id.to_string(), "allowedNetworks": ["any"] }));
    let refused = networks_command(&app, id, &["--allow", "203.0.113.7/24"]).unwrap_err();
    assert!(refused.contains("write 203.0.113.0/24 for the network"), "{refused}");
    let expire = |at: &str| format!("UPDATE api_keys SET expires_at = {at} WHERE id = '{id}'");
    app.database.connect().batch_execute(&expire("now()")).unwrap();
    let said = run(&app, &["key", "networks", &id.to_string()]).stdout;
    assert!(String::from_utf8_lossy(&said).ends_with("any. Its requests are refused, because it has expired.\n"));
    app.database.connect().batch_execute(&expire("NULL")).unwrap();
    app.clinic.revoke(id);
    assert!(networks_command(&app, id, &["--allow", "::1"]).unwrap_err().contains("was revoked"));
    let unknown: KeyId = "018f0000-0000-7000-8000-000000000000".parse().unwrap();
    assert!(networks_command(&app, unknown, &[]).unwrap_err().contains("there is no key"));

    let organisation = app.clinic.organisation.to_string();
    let command = |arguments: &[&str]| {
        let command = arguments.iter().fold(service(&app.database), |command, argument| command.argument(argument));
        let output = command.argument("--organisation").argument(&organisation).argument("--json").run();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let made = command(&["key", "create", "--name", "Office", "--allow", "203.0.113.9"]);
    let listed = command(&["key", "list"]);
    assert_eq!(listed[1]["allowedNetworks"], json!(["203.0.113.9"]));
    assert!(listed[0].get("allowedNetworks").is_none());
    let key = made["key"].as_str().unwrap();
    let replaced = service(&app.database).argument("key").argument("replace").argument(made["id"].as_str().unwrap());
    assert!(replaced.run().status.success());
    assert_eq!(app.database.count("api_keys WHERE allowed_networks = '{203.0.113.9}'"), 2);
    let body = patient().to_string();
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let request = intake_test_support::request("POST", "/api/v1/patients", &headers, body.as_bytes());
    assert_refused(&app.service.client().send(&request));
}

#[test]
fn a_member_limits_a_key_on_its_page_and_is_warned_of_a_lock_out() {
    for browser in [Browser::start(), Browser::without_scripts()] {
        let Some(browser) = browser else { return };
        let app = behind_a_proxy();
        app.join(&browser, "Ada", "ada@clinic.example");
        browser.press("Create API key");
        browser.fill("Name", "Front desk");
        browser.fill("Allowed networks", "203.0.113.7/24");
        browser.press("Create key");
        browser.wait_for("write 203.0.113.0/24 for the network, or the address alone.");
        assert_eq!(browser.value("Allowed networks"), "203.0.113.7/24");
        browser.fill("Allowed networks", "203.0.113.0/24");
        browser.press("Create key");
        let key = crate::fixtures::shown_key(&browser);
        let body = patient().to_string();
        assert_eq!(send_from(&app.service, &key, "203.0.113.9", &body).status, 201);
        assert_refused(&send_from(&app.service, &key, "198.51.100.7", &body));
        wait_for("the use", || app.database.count("key_uses WHERE last_address = '203.0.113.9'") == 1);
        wait_for("the refusal", || app.database.count("key_refusals WHERE reason = 'elsewhere'") == 1);
        browser.press("Done");
        browser.press("Front desk");
        browser.wait_for("From an address that isn't in Allowed networks");
        assert!(browser.text().contains("198.51.100.7") && browser.text().contains("203.0.113.0/24"));
        browser.press("Change allowed networks");
        browser.wait_for("Recently refused from");
        assert_eq!(browser.value("Allowed networks"), "203.0.113.0/24");
        browser.fill("Allowed networks", "office");
        browser.press("Save networks");
        browser.wait_for("“office” is neither an address such as 203.0.113.7");
        assert_eq!(browser.value("Allowed networks"), "office");
        browser.fill("Allowed networks", "198.51.100.0/24");
        browser.press("Save networks");
        browser.wait_for("This key was last used from 203.0.113.9, which these networks leave out.");
        assert_eq!(send_from(&app.service, &key, "203.0.113.9", &body).status, 201, "nothing is changed yet");
        browser.press("Save anyway");
        browser.wait_for("“Front desk” is accepted only from 198.51.100.0/24. Other requests are refused.");
        assert_refused(&send_from(&app.service, &key, "203.0.113.9", &body));
        assert_eq!(send_from(&app.service, &key, "198.51.100.7", &body).status, 201);
        browser.press("Activity");
        browser.wait_for("changed the allowed networks of the key Front desk: 203.0.113.0/24 → 198.51.100.0/24");
        browser.wait_for("created the key Front desk: only from 203.0.113.0/24");
    }
}

#[test]
fn the_advice_after_a_refused_request_fits_the_reason_that_is_shown() {
    let app = behind_a_proxy();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let sql = format!("UPDATE api_keys SET allowed_networks = '{{203.0.113.0/24}}' WHERE id = '{id}'");
    app.database.connect().batch_execute(&sql).unwrap();
    let told = || ada.get(&format!("/settings/api-keys/{id}/first-use")).text();
    let wrong = patient_with("phoneNumber", "0412 345 678").to_string();
    assert_refused(&send_from(&app.service, &key, "198.51.100.7", &wrong));
    wait_for("the address", || told().contains("isn't in Allowed networks. Change Allowed networks"));
    for _ in 0..2 {
        assert_eq!(send_from(&app.service, &key, "203.0.113.9", &wrong).status, 422);
    }
    wait_for("the field", || told().contains("A request was refused: Phone number. Tell the vendor."));
}

#[test]
fn refusals_by_the_own_list_of_networks_are_not_the_vendors() {
    let app = behind_a_proxy();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let sql = format!(
        "UPDATE api_keys SET allowed_networks = '{{203.0.113.0/24}}', contact = 'Acme', created_at = now() - interval '99 days'
         WHERE id = '{id}'"
    );
    app.database.connect().batch_execute(&sql).unwrap();
    assert_refused(&send_from(&app.service, &key, "198.51.100.7", &patient().to_string()));
    wait_for("the refusal", || app.database.count("key_refusals WHERE reason = 'elsewhere'") == 1);
    wait_for("the count", || app.database.count("key_answers WHERE status = 401 AND field = ''") == 1);
    let page = ada.get(&format!("/settings/api-keys/{id}")).text();
    for expected in [
        "No patients are getting through. Reason: From an address that isn't in Allowed networks.",
        "The last one came from 198.51.100.7.",
        "<th scope=\"row\">From an address that isn't in Allowed networks<span class=\"by\">If the vendor has moved,",
        "none yet; last refused request <time",
    ] {
        assert!(page.replace("&#39;", "'").contains(expected), "{expected}: {page}");
    }
    assert!(!page.contains("Call: Acme") && !page.contains("Never used in"), "{page}");
    let list = ada.get("/settings/api-keys").text().replace("&#39;", "'");
    assert!(list.contains("<span class=\"by\">From an address that isn't in Allowed networks</span>"), "{list}");
    assert!(list.contains("<span class=\"by\">refused <time") && !list.contains("Ask Acme"), "{list}");
}

#[test]
fn the_log_names_the_networks_of_a_new_key_and_of_its_replacement() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let create = ["key", "create", "--organisation", &id, "--name", "Front desk", "--allow", "203.0.113.7"];
    let made = done(&app, &create);
    done(&app, &["key", "replace", made["id"].as_str().unwrap()]);
    let csv = app.member("ada@clinic.example").get("/settings/activity.csv").text();
    assert_eq!(csv.matches("\"Front desk: only from 203.0.113.7\"").count(), 2, "{csv}");
}

#[test]
fn only_the_keys_own_organisation_changes_its_networks() {
    let app = behind_a_proxy();
    let (ada, other) = (app.member("ada@clinic.example"), app.other_clinic());
    let (id, _) = other.key();
    assert_eq!(ada.post(&format!("/settings/api-keys/{id}/networks"), "networks=::1").status, 404);
    assert_eq!(app.database.count("api_keys WHERE allowed_networks IS NOT NULL"), 0);
    let (own, _) = app.clinic.key();
    let path = format!("/settings/api-keys/{own}/networks");
    assert_eq!(ada.post(&path, "networks=::1").status, 303);
    assert!(ada.follow(&ada.post(&path, "networks=::1/128")).contains("Nothing was changed."));
    app.clinic.revoke(own);
    assert!(ada.follow(&ada.post(&path, "networks=")).contains("has been revoked, so it can&#39;t be changed."));
}
