//! Where an API key is used from: the address of the client, and what the client calls itself.

use std::fmt;
use std::net::IpAddr;

use crate::environment::Environment;

/// Enough for the names of most programs, and for one line of a page.
const PROGRAM_MAX: usize = 80;

/// The client of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyClient {
    /// The client's address, if it is known.
    pub address: Option<IpAddr>,
    /// Name by which the client calls itself.
    pub program: ClientProgram,
}

/// The beginning of a `User-Agent`. A hint and no proof: a client says of itself what it likes. It is copied for each
/// request, so it has a fixed size and needs no allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ClientProgram {
    letters: [u8; PROGRAM_MAX],
    length: usize,
}

impl ClientProgram {
    /// The program that sends this `User-Agent`. Anything but printable ASCII becomes a question mark.
    #[must_use]
    pub fn of(user_agent: &[u8]) -> Self {
        let mut letters = [0; PROGRAM_MAX];
        for (letter, byte) in letters.iter_mut().zip(user_agent) {
            *letter = if matches!(byte, b' '..=b'~') { *byte } else { b'?' };
        }
        Self { letters, length: user_agent.len().min(PROGRAM_MAX) }
    }

    /// The name, if the client gave one. It ends before anything that looks like an API key, which nobody may read.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let letters = self.letters.get(..self.length).unwrap_or_default();
        let text = std::str::from_utf8(letters).unwrap_or_default();
        let end = Environment::ALL.iter().filter_map(|of| text.find(of.key_mark())).min().unwrap_or(text.len());
        Some(text.get(..end).unwrap_or_default().trim()).filter(|name| !name.is_empty())
    }
}

impl fmt::Debug for ClientProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_by_the_beginning_of_what_it_says_and_nothing_else() {
        let long = "x".repeat(200);
        let key = format!("Booking/1.0 intake_live_{}", "k".repeat(36));
        for (user_agent, name) in [
            ("curl/8.14.1", Some("curl/8.14.1")),
            ("  python-requests/2.32  ", Some("python-requests/2.32")),
            ("<script>\t\u{7}\u{202E}é", Some("<script>???????")),
            (&long, Some(&long[..80])),
            (&key, Some("Booking/1.0 intake")),
            ("_demo_abc", None),
            ("", None),
            ("   ", None),
        ] {
            assert_eq!(ClientProgram::of(user_agent.as_bytes()).name(), name, "{user_agent}");
        }
        assert!(!format!("{:?}", ClientProgram::of(key.as_bytes())).contains("kk"));
    }
}
