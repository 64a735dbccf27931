//! A provider of single sign-on that a test makes up: it says what the test wants, and can lie, or take its time.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use intake_edge as edge;
use intake_test_support::provider::{ProviderKey, provider_document, read_request, token_answer};
use intake_test_support::{Response, ServiceBuilder, request};
use ring::hmac;
use serde_json::{Value, json};

use crate::accounts::single_sign_on::signed_in;
use crate::fixtures::{Member, TestApp};

pub(crate) const CLIENT: &str = "intake";
pub(crate) const SECRET: &str = "the client's secret";

/// Pace of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    AtOnce,
    /// After as long as a busy provider takes.
    Slow,
    /// The head, and then nothing for a long time.
    Hangs,
    /// A byte now and then, without an end.
    Trickles,
    /// A body without an end, as fast as it is taken.
    Floods,
    /// To somewhere else.
    Redirects,
}

/// Behaviour of the provider, as a test wants it. As it is, it tells the truth.
pub(crate) struct Plan {
    pub(crate) claims: Value,
    /// `ES256`, or what it says instead.
    pub(crate) algorithm: &'static str,
    /// Which of its keys signs.
    pub(crate) signs_with: usize,
    /// Which of its keys it names as its own.
    pub(crate) publishes: usize,
    pub(crate) issuer: Option<&'static str>,
    pub(crate) document: Pace,
    pub(crate) tokens: Pace,
    /// The address and whether it is verified, where the provider says it only when it is asked again.
    pub(crate) told_later: Option<Value>,
    /// The requests that came in.
    pub(crate) asked: Vec<String>,
}

pub(crate) struct MadeUpProvider {
    pub(crate) port: u16,
    plan: Arc<Mutex<Plan>>,
}

/// A browser's way to the provider and back.
pub(crate) struct Round {
    pub(crate) cookie: String,
    pub(crate) address: String,
    pub(crate) state: String,
    pub(crate) nonce: String,
}

impl MadeUpProvider {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let plan = Plan {
            claims: json!({}),
            algorithm: "ES256",
            signs_with: 0,
            publishes: 0,
            issuer: None,
            document: Pace::AtOnce,
            tokens: Pace::AtOnce,
            told_later: None,
            asked: Vec::new(),
        };
        let plan = Arc::new(Mutex::new(plan));
        let shared = Arc::clone(&plan);
        thread::spawn(move || {
            let keys = Arc::new([(); 2].map(|()| ProviderKey::generate()));
            for stream in listener.incoming() {
                let (Ok(stream), plan, keys) = (stream, Arc::clone(&shared), Arc::clone(&keys)) else { return };
                thread::spawn(move || answer(stream, port, &plan, &keys[..]));
            }
        });
        Self { port, plan }
    }

    pub(crate) fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap()
    }

    /// A service whose members sign in by it.
    pub(crate) fn with_service(&self) -> TestApp {
        TestApp::start_with(|builder| self.settings(builder))
    }

    pub(crate) fn settings(&self, builder: ServiceBuilder) -> ServiceBuilder {
        let builder = builder.setting("INTAKE_OIDC_ISSUER", self.issuer()).setting("INTAKE_OIDC_CLIENT_ID", CLIENT);
        builder.setting("INTAKE_OIDC_CLIENT_SECRET", SECRET).setting("INTAKE_OIDC_NAME", "Harbour Login")
    }

    /// Returns what a truthful provider says of this person in this round.
    pub(crate) fn truth(&self, email: &str, round: &Round) -> Value {
        let now = edge::now().unix_timestamp();
        json!({
            "iss": self.issuer(), "aud": CLIENT, "sub": email.to_lowercase(), "exp": now + 300, "iat": now, "nonce": round.nonce,
            "email": email, "email_verified": true, "name": "Ann Chovy", "auth_time": now,
        })
    }

    /// A person who joins the organisation by it, and has confirmed who they are.
    pub(crate) fn member(&self, app: &TestApp, email: &str) -> Member {
        let mut member = signed_in(app, &self.go(app, &format!("{}/provider", app.invite(email)), "", email));
        let confirmed = self.go(app, "/settings/confirm/provider", &member.cookie, email);
        assert_eq!(confirmed.status, 303, "{}", confirmed.text());
        member.go_on(&confirmed);
        member
    }

    /// Links the account of a member, who has confirmed who they are, to this person.
    pub(crate) fn link(&self, app: &TestApp, member: &Member, email: &str) -> Response {
        self.go(app, "/settings/account/provider?begin=yes", &member.cookie, email)
    }

    /// A person who joins the organisation with a password, and links the account.
    pub(crate) fn member_with_password(&self, app: &TestApp, email: &str) -> Member {
        let member = app.member(email);
        assert_eq!(self.link(app, &member, email).header("location"), Some("/settings/account"));
        member
    }

    /// Goes to the provider and back as this person.
    pub(crate) fn sign_in(&self, app: &TestApp, email: &str) -> Response {
        self.go(app, "/sign-in/provider", "", email)
    }

    /// The same from this page, with more cookies.
    pub(crate) fn go(&self, app: &TestApp, from: &str, cookies: &str, email: &str) -> Response {
        let round = begin(app, from, cookies);
        let truth = self.truth(email, &round);
        self.plan().claims = truth;
        come_back(app, &round, cookies)
    }
}

/// Leaves for the provider from this page.
pub(crate) fn begin(app: &TestApp, from: &str, cookies: &str) -> Round {
    let left = app.service.client().send(&request("GET", from, &[("Cookie", cookies)], b""));
    assert_eq!(left.status, 303, "{}", left.text());
    let address = left.header("location").unwrap().to_owned();
    let parameter = |name: &str| {
        let found = address.split(['?', '&']).find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        found.unwrap_or_else(|| panic!("{name} in {address}")).to_owned()
    };
    let cookie = left.all("set-cookie").first().unwrap().split(';').next().unwrap().to_owned();
    Round { cookie, state: parameter("state"), nonce: parameter("nonce"), address }
}

/// Comes back from the provider with a code.
pub(crate) fn come_back(app: &TestApp, round: &Round, cookies: &str) -> Response {
    let path = format!("/sign-in/provider/return?code=the-code&state={}", round.state);
    let cookies = format!("{}; {cookies}", round.cookie);
    app.service.client().send(&request("GET", &path, &[("Cookie", &cookies), ("Accept", "text/html")], b""))
}

fn answer(mut stream: TcpStream, port: u16, plan: &Mutex<Plan>, keys: &[ProviderKey]) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let Some((line, body)) = read_request(&mut reader) else { return };
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let (pace, text) = {
            let mut plan = plan.lock().unwrap();
            plan.asked.push(format!("{line}{body}"));
            match path.as_str() {
                "/.well-known/openid-configuration" => (plan.document, document(&plan, port)),
                "/keys" => (Pace::AtOnce, keys[plan.publishes].published(plan.publishes)),
                "/token" => (plan.tokens, signed(&plan, &keys[plan.signs_with])),
                "/person" => (Pace::AtOnce, plan.told_later.clone().unwrap_or_default().to_string()),
                _ => (Pace::AtOnce, "{}".to_owned()),
            }
        };
        if pace == Pace::Slow {
            thread::sleep(Duration::from_millis(300));
        }
        if send(&mut stream, pace, &text).is_err() || !matches!(pace, Pace::AtOnce | Pace::Slow) {
            return;
        }
    }
}

fn send(stream: &mut TcpStream, pace: Pace, text: &str) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    match pace {
        // In one piece: each further one could wait for the client to acknowledge the last.
        Pace::AtOnce | Pace::Slow => {
            stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes())
        }
        Pace::Redirects => {
            write!(stream, "HTTP/1.1 307 Elsewhere\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
        }
        Pace::Hangs => {
            write!(stream, "{head}Content-Length: 10\r\n\r\n")?;
            thread::sleep(Duration::from_secs(60));
            Ok(())
        }
        Pace::Trickles => {
            write!(stream, "{head}Content-Length: 100000\r\n\r\n{{")?;
            (0..600).try_for_each(|_| {
                thread::sleep(Duration::from_millis(100));
                stream.write_all(b" ")
            })
        }
        Pace::Floods => {
            write!(stream, "{head}\r\n{{\"a\":\"")?;
            (0..100_000).try_for_each(|_| stream.write_all(&[b'x'; 4_096]))
        }
    }
}

fn document(plan: &Plan, port: u16) -> String {
    let address = format!("http://127.0.0.1:{port}");
    provider_document(&address, plan.issuer.unwrap_or(&address))
}

fn signed(plan: &Plan, key: &ProviderKey) -> String {
    let header = json!({ "alg": plan.algorithm, "kid": plan.signs_with.to_string(), "typ": "JWT" });
    token_answer(&header, &plan.claims, |text| match plan.algorithm {
        "none" => Vec::new(),
        "HS256" => hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), text.as_bytes()).as_ref().to_vec(),
        _ => key.sign(text),
    })
}
