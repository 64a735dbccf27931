//! Chromium, over the protocol of its driver.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use intake_infra::embedded::Packages;
use serde_json::{Value, json};

use crate::client::{Client, request};
use crate::left_out::{Prerequisite, leave_out};

/// A browser, and the program that drives it.
const CHROMIUM: Prerequisite = Prerequisite {
    subject: "pages",
    need: "Chromium and its driver",
    packages: Packages {
        apt: "apt-get install chromium chromium-driver",
        dnf: "dnf install chromium chromedriver",
        brew: "brew install --cask chromium chromedriver",
    },
};
const STARTS_MAX: u32 = 5;
/// Chromium without a window system, which starts in a fifth of the processor time. Used where it is installed. It must
/// be the program itself: the driver would end the script in front of it, and leave the browser running.
const SHELL: &str = "/usr/lib/chromium/chromium-headless-shell";
/// Without them a browser looks for updates and services that tests have no business with.
const ARGUMENTS: &str = "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync \
    --disable-background-networking --disable-component-update --window-size=1280,900";

/// A Chromium with a driver of its own, ended when dropped.
pub(crate) struct Chromium {
    driver: Child,
    client: Client,
    session: String,
}

impl Chromium {
    /// Starts it. None, where there is none: the test is left out then; under CI it fails.
    pub(crate) fn start() -> Option<Self> {
        let arguments: Vec<_> = ARGUMENTS.split(' ').collect();
        let options = match Path::new(SHELL).exists() {
            true => json!({ "args": arguments, "binary": SHELL }),
            false => json!({ "args": arguments }),
        };
        let wishes = json!({ "acceptInsecureCerts": true, "goog:chromeOptions": options });
        let mut complaints = Vec::new();
        for _ in 0..STARTS_MAX {
            let (driver, address) = start_driver()?;
            let client = Client::plain(address);
            let mut chromium = Self { driver, client, session: String::new() };
            // The driver gives up a browser that takes long to start.
            match chromium.ask("POST", "/session", &json!({ "capabilities": { "alwaysMatch": wishes } })) {
                Ok(started) => {
                    let id = started.pointer("/sessionId").and_then(Value::as_str).expect("a session");
                    chromium.session = format!("/session/{id}");
                    return Some(chromium);
                }
                Err(complaint) => complaints.push(complaint),
            }
        }
        panic!("the browser does not start: {complaints:?}")
    }

    /// Asks the driver about the browser's session.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [("Content-Type", "application/json; charset=utf-8")];
        let answer = self.client.send(&request(method, &format!("{}{path}", self.session), &headers, body.as_bytes()));
        let value = answer.json().pointer("/value").cloned().unwrap_or_default();
        if answer.status == 200 { Ok(value) } else { Err(value) }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.ask("DELETE", "", &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Starts the program that drives a browser. It chooses a free port, and ends at once if another program takes that
/// port before it does: then it is started again.
fn start_driver() -> Option<(Child, SocketAddr)> {
    for _ in 0..STARTS_MAX {
        let driver = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut driver) = driver else {
            leave_out(&CHROMIUM);
            return None;
        };
        let output = BufReader::new(driver.stdout.take().expect("piped"));
        let port = output.lines().map_while(Result::ok).find_map(|line| {
            line.split_once("successfully on port ").map(|(_, port)| port.trim_end_matches('.').to_owned())
        });
        if let Some(port) = port {
            return Some((driver, format!("127.0.0.1:{port}").parse().expect("an address")));
        }
        let _ = driver.wait();
    }
    panic!("the driver of the browser does not tell its port");
}
