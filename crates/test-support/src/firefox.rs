//! Firefox, over Marionette: the protocol that it speaks to its own driver, which Debian 12 does not package. Its
//! commands are those of other drivers under other names.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use intake_infra::embedded::Packages;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::left_out::{Prerequisite, leave_out};
use crate::wait_for;

const FIREFOX: Prerequisite = Prerequisite {
    subject: "pages in a second browser",
    need: "Firefox",
    packages: Packages {
        apt: "apt-get install firefox-esr",
        dnf: "dnf install firefox",
        brew: "brew install --cask firefox",
    },
};
/// Names of the program on Debian and elsewhere.
const NAMES: [&str; 2] = ["firefox-esr", "firefox"];
/// A free port of its choice, which it writes into its profile.
const PREFERENCES: &str = "user_pref(\"marionette.port\", 0);\n";
/// Size in pixels. Wider pages are laid out, but not drawn.
const WINDOW: (u32, u32) = (2_000, 1_100);
/// Longer than any page takes on a busy machine.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// A Firefox with a profile of its own, ended when dropped.
pub(crate) struct Firefox {
    process: Child,
    connection: Mutex<BufReader<TcpStream>>,
    _profile: TempDir,
}

impl Firefox {
    /// Starts it. None, where there is none: the test is left out then; under CI it fails.
    pub(crate) fn start() -> Option<Self> {
        let profile = tempfile::tempdir().expect("a folder for the profile");
        std::fs::write(profile.path().join("user.js"), PREFERENCES).expect("the folder can be written");
        let start = |name: &&str| {
            let mut firefox = Command::new(name);
            firefox.args(["--headless", "--no-remote", "--marionette", "--remote-allow-system-access", "--profile"]);
            firefox.arg(profile.path()).env("HOME", profile.path());
            firefox.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
        };
        let Some(process) = NAMES.iter().find_map(start) else {
            leave_out(&FIREFOX);
            return None;
        };
        let file = profile.path().join("MarionetteActivePort");
        let port = || std::fs::read_to_string(&file).ok()?.trim().parse::<u16>().ok();
        wait_for("Firefox to listen", || port().is_some());
        let stream = TcpStream::connect(("127.0.0.1", port()?)).expect("Firefox listens");
        stream.set_read_timeout(Some(ANSWER_LIMIT)).expect("a limit can be set");
        let mut connection = BufReader::new(stream);
        let _greeting = receive(&mut connection);
        let firefox = Self { process, connection: Mutex::new(connection), _profile: profile };
        firefox.command("WebDriver:NewSession", &json!({ "acceptInsecureCerts": true })).expect("a session");
        let (width, height) = WINDOW;
        firefox.command("WebDriver:SetWindowRect", &json!({ "width": width, "height": height })).expect("a window");
        firefox.on_a_screen(1_280);
        Some(firefox)
    }

    /// Asks as one asks a driver.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        let mut parameters = body.as_object().cloned().unwrap_or_default();
        let parts: Vec<_> = path.split('/').skip(1).collect();
        if let ["element", id, ..] = parts[..] {
            parameters.insert("id".to_owned(), id.into());
        }
        let name = match (method, &parts[..]) {
            ("GET", ["url"]) => "WebDriver:GetCurrentURL",
            (_, ["url"]) => "WebDriver:Navigate",
            (_, ["refresh"]) => "WebDriver:Refresh",
            (_, ["back"]) => "WebDriver:Back",
            (_, ["element"]) => "WebDriver:FindElement",
            (_, ["elements"]) => "WebDriver:FindElements",
            (_, ["element", _, "text"]) => "WebDriver:GetElementText",
            (_, ["element", _, "clear"]) => "WebDriver:ElementClear",
            (_, ["element", _, "value"]) => "WebDriver:ElementSendKeys",
            (_, ["element", _, "click"]) => "WebDriver:ElementClick",
            (_, ["element", _, "property", name]) => {
                parameters.insert("name".to_owned(), (*name).into());
                "WebDriver:GetElementProperty"
            }
            (_, ["actions"]) => "WebDriver:PerformActions",
            (_, ["execute", "sync"]) => "WebDriver:ExecuteScript",
            (_, ["screenshot"]) => {
                parameters.insert("full".to_owned(), false.into());
                "WebDriver:TakeScreenshot"
            }
            _ => panic!("only Chromium can do this: {method} {path}"),
        };
        self.command(name, &parameters.into())
    }

    /// Lays the page out for a screen of this width.
    pub(crate) fn on_a_screen(&self, width: u32) {
        self.in_its_own_window(&format!("browser.style.minWidth = browser.style.maxWidth = '{width}px';"));
    }

    /// Shows the page on this medium, with these features chosen.
    pub(crate) fn emulate(&self, medium: &str, features: &[(&str, &str)]) {
        let chosen = |name: &str| features.iter().find(|(known, _)| *known == name).map_or("none", |(_, value)| *value);
        let medium = if medium == "screen" { "" } else { medium };
        self.in_its_own_window(&format!(
            "const context = browser.browsingContext;
             context.mediumOverride = '{medium}';
             context.prefersColorSchemeOverride = '{}';
             context.forcedColorsOverride = '{}';",
            chosen("prefers-color-scheme"),
            chosen("forced-colors")
        ));
    }

    fn in_its_own_window(&self, script: &str) {
        let within = |context: &str| self.command("Marionette:SetContext", &json!({ "value": context }));
        let script = format!("const browser = gBrowser.selectedBrowser; {script}");
        within("chrome").expect("its window");
        self.command("WebDriver:ExecuteScript", &json!({ "script": script, "args": [] })).expect("the script runs");
        within("content").expect("the page");
    }

    /// A message is its length, a colon, and `[0, id, command, parameters]`; the answer to it `[1, id, error, value]`.
    fn command(&self, name: &str, parameters: &Value) -> Result<Value, Value> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let message = json!([0, 1, name, parameters]).to_string();
        // In one piece: each further one would wait for Firefox to acknowledge the last.
        let message = format!("{}:{message}", message.len());
        connection.get_mut().write_all(message.as_bytes()).expect("Firefox goes on");
        let answer = receive(&mut connection);
        match (answer.get(2), answer.get(3)) {
            // Lists come as they are.
            (Some(Value::Null), Some(value)) => Ok(value.get("value").unwrap_or(value).clone()),
            (error, _) => Err(error.cloned().unwrap_or_default()),
        }
    }
}

fn receive(connection: &mut BufReader<TcpStream>) -> Value {
    let mut length = Vec::new();
    connection.read_until(b':', &mut length).expect("Firefox answers in time");
    let length: usize = String::from_utf8_lossy(&length).trim_end_matches(':').parse().expect("a length");
    let mut message = vec![0; length];
    connection.read_exact(&mut message).expect("Firefox answers in time");
    serde_json::from_slice(&message).expect("JSON")
}

impl Drop for Firefox {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
