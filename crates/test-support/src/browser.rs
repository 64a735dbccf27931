//! A real browser, driven as a person would use it: Chromium (`chromium.rs`) or Firefox (`firefox.rs`).

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::firefox::Firefox;

const TIMEOUT: Duration = Duration::from_secs(120);
/// The key under which the protocol gives an element.
pub(crate) const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Tells whether tests try everything, which takes long: each page in a second browser and without scripts, too.
#[must_use]
pub fn is_nightly() -> bool {
    std::env::var_os("INTAKE_TEST_NIGHTLY").is_some_and(|value| value == "yes")
}

/// A browser with one window, closed when dropped.
pub struct Browser(Driven);

enum Driven {
    Chromium(Chromium),
    Firefox(Firefox),
}

/// Something on a page.
#[derive(Clone, Debug)]
pub struct Element(String);

impl Browser {
    /// Starts a browser. None, where there is none: the test is left out then; under CI it fails.
    #[must_use]
    pub fn start() -> Option<Self> {
        Chromium::start().map(|chromium| Self(Driven::Chromium(chromium)))
    }

    /// Starts a browser that runs no scripts.
    #[must_use]
    pub fn without_scripts() -> Option<Self> {
        let browser = Self::start()?;
        browser.tell("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
        Some(browser)
    }

    /// Starts Chromium, and each night Firefox after it, for tests of what both must do.
    pub fn each() -> impl Iterator<Item = Self> {
        Self::start().into_iter().chain(is_nightly().then(Self::firefox).flatten())
    }

    /// Starts Firefox.
    #[must_use]
    pub fn firefox() -> Option<Self> {
        Firefox::start().map(|firefox| Self(Driven::Firefox(firefox)))
    }

    /// Opens a page.
    pub fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// Loads the page again.
    pub fn reload(&self) {
        self.post("/refresh", &json!({}));
    }

    /// Goes one page back.
    pub fn back(&self) {
        // The driver may lose sight of the page that it leaves; what is shown then is looked at anyway.
        let _ = self.try_ask("POST", "/back", &json!({}));
    }

    /// Returns where the browser is.
    #[must_use]
    pub fn url(&self) -> String {
        self.get("/url").as_str().expect("a URL").to_owned()
    }

    /// Returns what a reader sees of the page.
    #[must_use]
    pub fn text(&self) -> String {
        self.text_of(&self.find("xpath", "//body"))
    }

    /// Waits until the page shows a text.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        let started = Instant::now();
        loop {
            let page = self.text();
            if page.contains(text) {
                return;
            }
            assert!(started.elapsed() < TIMEOUT, "never shown: {text}\nat {}:\n{page}", self.url());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until this script gives this value. A browser shows a page before it sets the focus.
    #[track_caller]
    pub fn wait_until(&self, script: &str, expected: impl Into<Value>) {
        let (started, expected) = (Instant::now(), expected.into());
        loop {
            let value = self.run(script);
            if value == expected {
                return;
            }
            assert!(started.elapsed() < TIMEOUT, "{script}: {value} and never {expected}, at {}", self.url());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the element with this `id` has the focus.
    #[track_caller]
    pub fn wait_for_focus(&self, id: &str) {
        self.wait_until("return document.activeElement.id", id);
    }

    /// The field with this label.
    #[must_use]
    #[track_caller]
    pub fn field(&self, label: &str) -> Element {
        self.find("xpath", &format!("//*[@id=//label[starts-with(normalize-space(),\"{label}\")]/@for]"))
    }

    /// Types into the field with this label, in place of what is there.
    #[track_caller]
    pub fn fill(&self, label: &str, text: &str) {
        let Element(id) = self.field(label);
        self.post(&format!("/element/{id}/clear"), &json!({}));
        self.post(&format!("/element/{id}/value"), &json!({ "text": text }));
    }

    /// Returns what stands in the field with this label.
    #[must_use]
    #[track_caller]
    pub fn value(&self, label: &str) -> String {
        let Element(id) = self.field(label);
        self.get(&format!("/element/{id}/property/value")).as_str().expect("a text").to_owned()
    }

    /// Presses the button, or follows the link, of this name.
    #[track_caller]
    pub fn press(&self, name: &str) {
        let is_named = format!("normalize-space()=\"{name}\" or @aria-label=\"{name}\"");
        let Element(id) = self.find("xpath", &format!("//button[{is_named}] | //a[{is_named}]"));
        self.post(&format!("/element/{id}/click"), &json!({}));
    }

    /// Returns whether there is a button or link of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let path = format!("//button[normalize-space()=\"{name}\"] | //a[normalize-space()=\"{name}\"]");
        let found = self.ask("POST", "/elements", &json!({ "using": "xpath", "value": path }));
        found.as_array().is_some_and(|found| !found.is_empty())
    }

    /// Presses keys where the focus is; `\u{E004}` is Tab, `\u{E007}` Enter. A `\u{E009}`, Control, is held to the end.
    pub fn keys(&self, keys: &str) {
        let (held, struck): (Vec<char>, Vec<char>) = keys.chars().partition(|key| *key == '\u{E009}');
        let stroke = |kind: &str, key: &char| json!({ "type": kind, "value": key });
        let mut strokes: Vec<_> = held.iter().map(|key| stroke("keyDown", key)).collect();
        strokes.extend(struck.iter().flat_map(|key| [stroke("keyDown", key), stroke("keyUp", key)]));
        strokes.extend(held.iter().map(|key| stroke("keyUp", key)));
        self.post("/actions", &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": strokes }] }));
    }

    /// Runs a script in the page and gives what it returns.
    #[must_use]
    pub fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// A picture of the window, as PNG.
    #[must_use]
    pub fn screenshot(&self) -> Vec<u8> {
        let picture = self.get("/screenshot");
        BASE64_STANDARD.decode(picture.as_str().expect("a picture")).expect("Base64")
    }

    /// Lays the page out for a screen of this width.
    pub fn on_a_screen(&self, width: u32) {
        if let Driven::Firefox(firefox) = &self.0 {
            return firefox.on_a_screen(width);
        }
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.tell("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Shows the page on this medium, with these features chosen.
    pub fn emulate(&self, medium: &str, features: &[(&str, &str)]) {
        if let Driven::Firefox(firefox) = &self.0 {
            return firefox.emulate(medium, features);
        }
        let features: Vec<_> = features.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        self.tell("Emulation.setEmulatedMedia", &json!({ "media": medium, "features": features }));
    }

    /// Tells Chromium something in its own protocol.
    pub fn tell(&self, command: &str, parameters: &Value) {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }));
    }

    /// Lets the browser keep what it downloads, in this folder.
    pub fn download_into(&self, folder: &Path) {
        self.tell("Browser.setDownloadBehavior", &json!({ "behavior": "allow", "downloadPath": folder }));
    }

    /// Gives the browser a device with a fingerprint reader, say, which makes and keeps passkeys: it has verified its
    /// user each time. Gives its id.
    #[must_use]
    pub fn add_authenticator(&self) -> String {
        let device = json!({
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": true,
            "hasUserVerification": true,
            "isUserVerified": true,
        });
        self.post("/webauthn/authenticator", &device).as_str().expect("an id").to_owned()
    }

    /// Decides if the device recognises its user from now on.
    pub fn set_user_verified(&self, authenticator: &str, is_verified: bool) {
        let path = format!("/webauthn/authenticator/{authenticator}/uv");
        self.post(&path, &json!({ "isUserVerified": is_verified }));
    }

    #[track_caller]
    fn find(&self, using: &str, value: &str) -> Element {
        let started = Instant::now();
        loop {
            let found = self.try_ask("POST", "/element", &json!({ "using": using, "value": value }));
            if let Ok(found) = &found
                && let Some(id) = found.get(ELEMENT).and_then(Value::as_str)
            {
                return Element(id.to_owned());
            }
            assert!(
                started.elapsed() < TIMEOUT,
                "not on the page at {}: {value}\n{}",
                self.url(),
                self.run("return document.body.innerText")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn text_of(&self, Element(id): &Element) -> String {
        // The element may have gone with its page.
        let text = self.try_ask("GET", &format!("/element/{id}/text"), &Value::Null);
        text.ok().and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default()
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, &Value::Null)
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", path, body)
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        self.try_ask(method, path, body).unwrap_or_else(|error| panic!("{self:?}: {method} {path}: {error}"))
    }

    fn try_ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        match &self.0 {
            Driven::Chromium(chromium) => chromium.ask(method, path, body),
            Driven::Firefox(firefox) => firefox.ask(method, path, body),
        }
    }
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Driven::Chromium(_) => "Chromium",
            Driven::Firefox(_) => "Firefox",
        })
    }
}
