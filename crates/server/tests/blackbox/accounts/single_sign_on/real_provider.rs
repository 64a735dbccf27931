//! Single sign-on by a certified provider (oidc-provider for Node.js), in a browser.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use intake_infra::embedded::Packages;
use intake_test_support::{Browser, Prerequisite, ServiceBuilder, free_port, leave_out, request, wait_for};

use crate::fixtures::{PASSWORD, TestApp, unconfirm};

const PROVIDER: Prerequisite = Prerequisite {
    subject: "single sign-on",
    need: "oidc-provider",
    packages: Packages {
        apt: "apt-get install npm && crates/server/tests/blackbox/tools/install",
        dnf: "dnf install npm && crates/server/tests/blackbox/tools/install",
        brew: "brew install npm && crates/server/tests/blackbox/tools/install",
    },
};
const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/npm");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/blackbox/accounts/single_sign_on/real_provider.mjs");
const SECRET: &str = "s3cret: with + and %";

/// The provider's program, which ends with the test.
struct RealProvider {
    node: Child,
    /// Without a reader it would end when it says something.
    _output: BufReader<ChildStdout>,
}

impl RealProvider {
    fn start(port: u16, app: &TestApp) -> Self {
        let return_address = app.url("/sign-in/provider/return");
        let mut node = Command::new("node");
        node.args([SCRIPT, PACKAGES, &port.to_string(), &return_address, SECRET]);
        let mut node = node.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(node.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "listening\n");
        Self { node, _output: output }
    }
}

impl Drop for RealProvider {
    fn drop(&mut self) {
        let _ = self.node.kill();
        let _ = self.node.wait();
    }
}

/// Types an address at the provider, which believes everybody, and allows what it asks for.
fn sign_in_there(browser: &Browser, email: &str) {
    browser.wait_for("Sign-in");
    let _ = browser.run(&format!(
        "document.querySelector('[name=login]').value = '{email}';
         document.querySelector('[name=password]').value = 'anything';
         document.querySelector('button').click()"
    ));
}

fn allow(browser: &Browser) {
    browser.wait_for("Authorize");
    let _ = browser.run("document.querySelector('button').click()");
}

fn settings(builder: ServiceBuilder, port: u16) -> ServiceBuilder {
    let issuer = format!("http://127.0.0.1:{port}");
    let builder = builder.setting("INTAKE_OIDC_ISSUER", &issuer).setting("INTAKE_OIDC_CLIENT_ID", "intake");
    builder.setting("INTAKE_OIDC_CLIENT_SECRET", SECRET).setting("INTAKE_OIDC_NAME", "Harbour Login")
}

#[test]
fn members_join_sign_in_and_confirm_by_a_certified_provider() {
    let Some(browser) = Browser::start() else { return };
    if !Path::new(PACKAGES).join("node_modules/oidc-provider").exists() {
        leave_out(&PROVIDER);
        return;
    }
    let port = free_port();
    let app = TestApp::start_with(|builder| settings(builder, port));
    // The provider is away when the service starts.
    browser.open(&app.url("/sign-in"));
    browser.press("Sign in with Harbour Login");
    browser.wait_for("Harbour Login doesn't answer");
    browser.press("Back to sign in");
    browser.wait_for("New here?");
    let provider = RealProvider::start(port, &app);
    // A provider that has failed is left alone for a while.
    let leave = || app.service.client().send(&request("GET", "/sign-in/provider", &[], b""));
    wait_for("another try", || leave().status != 503);

    browser.open(&app.url(&app.invite("ann@clinic.example")));
    browser.press("Join with Harbour Login");
    sign_in_there(&browser, "ann@clinic.example");
    allow(&browser);
    browser.wait_for("No API keys yet.");
    browser.press("Account");
    browser.wait_for("by single sign-on");
    assert!(browser.text().contains("Ann Chovy"));

    browser.press("Sign out");
    browser.wait_for("You have signed out.");
    browser.press("Sign in with Harbour Login");
    browser.wait_for("No API keys yet.");
    unconfirm(&app);
    browser.press("Account");
    browser.press("Change password");
    browser.wait_for("Confirm it's you");
    assert!(!browser.has("Your password"), "there is none");
    browser.press("Confirm with Harbour Login");
    sign_in_there(&browser, "ann@clinic.example");
    browser.wait_for("New password");
    browser.fill("New password", PASSWORD);
    browser.press("Change password");
    browser.wait_for("Your password was changed");

    browser.press("Sign out");
    browser.wait_for("You have signed out.");
    for (email, words) in [
        ("bob@clinic.example", "No account for bob@clinic.example"),
        ("unverified@clinic.example", "Your email address isn't verified"),
    ] {
        browser.open(&app.url("/sign-in/provider?anew=yes"));
        sign_in_there(&browser, email);
        allow(&browser);
        browser.wait_for(words);
    }
    // What the provider answered before is good for a while; without it there is no sign-in, but by password.
    drop(provider);
    app.sign_in(&browser, "ann@clinic.example", PASSWORD);
    browser.wait_for("No API keys yet.");
}

#[test]
fn where_passwords_are_off_a_certified_provider_lets_members_in() {
    let Some(browser) = Browser::start() else { return };
    if !Path::new(PACKAGES).join("node_modules/oidc-provider").exists() {
        leave_out(&PROVIDER);
        return;
    }
    let port = free_port();
    let app = TestApp::start_with(|builder| settings(builder, port).setting("INTAKE_PASSWORDS", "off"));
    let _provider = RealProvider::start(port, &app);
    browser.open(&app.url(&app.invite("ann@clinic.example")));
    assert!(!browser.has("Password"));
    browser.press("Join with Harbour Login");
    sign_in_there(&browser, "ann@clinic.example");
    allow(&browser);
    browser.wait_for("No API keys yet.");
    browser.press("Sign out");
    browser.wait_for("You have signed out.");
    assert!(!browser.has("Password") && !browser.has("Use a passkey instead"));
    browser.press("Sign in with Harbour Login");
    browser.wait_for("No API keys yet.");
    browser.open(&app.url("/settings/policies/key-age"));
    browser.wait_for("Confirm it's you");
    browser.press("Confirm with Harbour Login");
    sign_in_there(&browser, "ann@clinic.example");
    browser.wait_for("Keys that exist keep their expiry.");
    browser.press("Account");
    browser.wait_for("by single sign-on");
    assert!(!browser.has("Change password"));
}
