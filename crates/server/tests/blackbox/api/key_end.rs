//! A key with an end says so on every answer, so that its holder learns of the end in time.

use diesel::connection::SimpleConnection;
use intake_domain::timestamp;
use intake_edge as edge;
use intake_test_support::{Response, patient};
use time::Duration;

use crate::api::own_key::get;
use crate::fixtures::TestApp;

fn end(answer: &Response) -> Option<&str> {
    answer.header("intake-key-expires")
}

#[test]
fn every_answer_to_a_live_key_with_an_end_names_it_and_no_other_answer_does() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "1/5"));
    let expires = edge::now() + Duration::HOUR;
    let (id, key) = app.clinic.key_until(Some(expires));
    let named = timestamp(expires);
    let answers = [
        app.service.create(&key, &patient()),
        app.service.create_with(&key, &[], b"{"),
        app.service.create_with(&key, &[], b"{}"),
        get(&app.service, &key, "/api/v1/key"),
        app.service.create_with(&key, &[("Content-Type", "text/plain")], b"{}"),
        // On a busy machine the key may do more meanwhile.
        (0..50).map(|_| app.service.create(&key, &patient())).find(|answer| answer.status == 429).unwrap(),
    ];
    assert_eq!(answers.each_ref().map(|answer| answer.status), [201, 400, 422, 200, 415, 429]);
    for answer in &answers {
        assert_eq!(end(answer), Some(named.as_str()), "{}", answer.status);
    }
    assert_eq!(answers[3].json()["data"]["expiresAt"], named);
    assert_eq!(end(&app.create(&patient())), None);
    let (_, second) = app.clinic.key_until(Some(expires));
    assert_eq!(end(&app.service.create(&second, &patient())), Some(named.as_str()));
    let over = format!("UPDATE api_keys SET expires_at = now() WHERE id <> '{id}'");
    app.database.connect().batch_execute(&over).unwrap();
    let refused = app.service.create(&second, &patient());
    assert_eq!((refused.status, end(&refused)), (401, None));
}
