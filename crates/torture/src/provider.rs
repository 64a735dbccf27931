//! A provider of single sign-on that believes what people say of themselves.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use intake_test_support::provider::{ProviderKey, provider_document, read_request, token_answer};
use serde_json::{Value, json};

use crate::clock::now;

const CLIENT: &str = "torture";

/// A running provider.
pub(crate) struct Provider {
    address: String,
    /// Claims about people, by the numbers that are their codes.
    claims: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let provider = Self { address: address.clone(), claims: Arc::default() };
        let (claims, key) = (Arc::clone(&provider.claims), Arc::new(ProviderKey::generate()));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (address, claims, key) = (address.clone(), Arc::clone(&claims), Arc::clone(&key));
                std::thread::spawn(move || answer(stream, &address, &claims, &key));
            }
        });
        Ok(provider)
    }

    /// The settings of a service whose members sign in by it.
    pub(crate) fn settings(&self) -> [(String, String); 4] {
        let settings = [
            ("INTAKE_OIDC_ISSUER", self.address.as_str()),
            ("INTAKE_OIDC_CLIENT_ID", CLIENT),
            ("INTAKE_OIDC_CLIENT_SECRET", "secret"),
            ("INTAKE_OIDC_NAME", "Harbour Login"),
        ];
        settings.map(|(name, value)| (name.to_owned(), value.to_owned()))
    }

    /// The code with which a browser comes back as this person, whose address this is.
    pub(crate) fn code(&self, subject: &str, email: &str, nonce: &str) -> usize {
        let now = now().unix_timestamp();
        let claims = json!({
            "iss": self.address, "aud": CLIENT, "sub": subject, "exp": now + 300, "iat": now, "nonce": nonce,
            "email": email, "email_verified": true, "name": "Ada", "auth_time": now,
        });
        let mut all = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(claims);
        all.len() - 1
    }
}

fn answer(mut stream: TcpStream, address: &str, claims: &Mutex<Vec<Value>>, key: &ProviderKey) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let (line, body) = read_request(&mut reader)?;
        let text = match line.split(' ').nth(1)? {
            "/.well-known/openid-configuration" => provider_document(address, address),
            "/keys" => key.published(0),
            _ => {
                let code = body.split('&').find_map(|pair| pair.strip_prefix("code=")?.parse::<usize>().ok())?;
                let claims = claims.lock().unwrap_or_else(PoisonError::into_inner).get(code)?.clone();
                token_answer(&json!({ "alg": "ES256", "kid": "0", "typ": "JWT" }), &claims, |text| key.sign(text))
            }
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
        stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes()).ok()?;
    }
}
