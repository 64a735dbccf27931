//! What is refused because of who asks for it leaves a trace: a count by kind, a line of the log that names nobody, and
//! an entry of the audit log where a member asked. However often it is asked for, the traces stay few.

use std::time::Instant;

use intake_test_support::{request, wait_for};

use crate::accounts::single_sign_on::made_up_provider::MadeUpProvider;
use crate::fixtures::{Member, password_field, post};
use crate::service::metrics::value;

const TIMES: usize = 30;
const KINDS: [(&str, usize); 5] = [
    ("role", 2 * TIMES),
    ("form-token", TIMES),
    ("cross-site", TIMES),
    ("unknown-address", 3),
    ("unknown-at-provider", 2),
];

#[test]
fn refused_actions_are_counted_logged_at_most_once_a_second_and_recorded_once() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let ada = app.member("ada@clinic.example");
    let invitation = ada.invite_as("grace@clinic.example", "key-manager");
    let grace = Member::join(app.service.client(), &invitation, "Grace");
    let started = Instant::now();
    let send = |path: &str, headers: &[(&str, &str)], form: &str| post(&ada.client, path, headers, form).status;
    for _ in 0..TIMES {
        assert_eq!(grace.get("/settings/members").status, 403);
        assert_eq!(
            grace.post("/settings/members/invite", "email=mary%40clinic.example&role=administrator").status,
            403
        );
        assert_eq!(send("/settings/account/name", &[("Cookie", &ada.cookie)], "form_token=x&name=Eve"), 403);
        let from_elsewhere = [("Cookie", ada.cookie.as_str()), ("Sec-Fetch-Site", "cross-site")];
        let form = format!("form_token={}&name=Eve", ada.form_token);
        assert_eq!(send("/settings/account/name", &from_elsewhere, &form), 403);
    }
    for name in ["one", "two", "three"] {
        let form = format!("email={name}%40nowhere.example&{}", password_field("wrong and long enough"));
        assert_eq!(send("/sign-in", &[], &form), 401);
    }
    // A wrong password of a member is recorded as such.
    let wrong = format!("email=ada%40clinic.example&{}", password_field("wrong and long enough"));
    assert_eq!(send("/sign-in", &[], &wrong), 401);
    for _ in 0..2 {
        assert_eq!(provider.sign_in(&app, "stranger@nowhere.example").status, 403);
    }
    let counted = |kind: &str| value(&app.service, &format!("intake_refused_actions_total{{kind=\"{kind}\"}}"));
    let sample = |kind: &str| format!("intake_refused_actions_total{{kind=\"{kind}\"}} ");
    for (kind, expected) in KINDS {
        // Those of sign-ins are counted once they are answered.
        wait_for(kind, || counted(kind) > expected as f64 - 0.5);
        let metrics = app.service.probe("/metrics").text();
        assert!(metrics.contains(&format!("{}{expected}\n", sample(kind))), "{metrics}");
    }
    wait_for("the entries", || app.database.count("audit_entries WHERE action LIKE '%_refused'") == 2);
    let recorded = "SELECT concat_ws(', ', action, actor, actor_email, subject, address) FROM audit_entries
        WHERE action LIKE '%_refused' ORDER BY action";
    assert_eq!(
        app.database.texts(recorded),
        [
            "form_refused, Ada, ada@clinic.example, POST /settings/account/name, 127.0.0.1",
            "role_refused, Grace, grace@clinic.example, GET /settings/members, 127.0.0.1",
        ]
    );
    let activity = ada.get("/settings/activity").text();
    assert!(activity.contains("was not allowed by their role to use <strong>Members</strong>"), "{activity}");

    let seconds = usize::try_from(started.elapsed().as_secs()).unwrap() + 2;
    let output = app.service.output();
    for (kind, _) in KINDS {
        let is_about = |line: &&str| line.contains("an action was refused") && line.contains(kind);
        let lines: Vec<_> = output.lines().filter(is_about).collect();
        assert!((1..=seconds).contains(&lines.len()), "{kind}: {lines:?}");
        for line in lines {
            for name in ["Ada", "Grace", "example", "127.0.0.1", "/settings"] {
                assert!(!line.contains(name), "{line}");
            }
        }
    }
    let after = app.service.client().send(&request("GET", "/sign-in", &[], b""));
    assert_eq!(after.status, 200);
}
