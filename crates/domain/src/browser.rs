//! The browser of a session in plain words, by which its member recognises it. A hint and no proof: a browser says of
//! itself what it likes.

use std::fmt;

/// Names by which browsers call themselves. Those whose names others borrow come last.
const NAMES: [(&str, &str); 10] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Chromium/", "Chromium"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
];

/// Names of the systems that they run on. Phones borrow the names of larger systems.
const SYSTEMS: [(&str, &str); 7] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
];

/// A browser, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Browser {
    name: Option<&'static str>,
    system: Option<&'static str>,
}

impl Browser {
    /// The browser that sends this `User-Agent`.
    #[must_use]
    pub fn of(user_agent: &str) -> Self {
        let found = |known: &[(&str, &'static str)]| {
            known.iter().find(|(part, _)| user_agent.contains(part)).map(|(_, word)| *word)
        };
        Self { name: found(&NAMES), system: found(&SYSTEMS) }
    }
}

impl fmt::Display for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.unwrap_or("Unknown browser"))?;
        self.system.map_or(Ok(()), |system| write!(f, " on {system}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_distinguished_although_they_borrow_each_others_names() {
        const WEBKIT: &str = "AppleWebKit/537.36 (KHTML, like Gecko)";
        for (user_agent, shown) in [
            ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0", "Firefox on Windows"),
            (&format!("Mozilla/5.0 (X11; Linux x86_64) {WEBKIT} Chrome/142.0.0.0 Safari/537.36"), "Chrome on Linux"),
            (
                &format!("Mozilla/5.0 (Windows NT 10.0) {WEBKIT} Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0"),
                "Edge on Windows",
            ),
            (
                &format!(
                    "Mozilla/5.0 (Linux; Android 10; K) {WEBKIT} SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36"
                ),
                "Samsung Internet on Android",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Safari/605.1.15",
                "Safari on macOS",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0 Mobile/15E148 Safari/604.1",
                "Chrome on iPhone",
            ),
            ("curl/8.14.1", "curl"),
            ("something on Windows", "Unknown browser on Windows"),
            ("<script>", "Unknown browser"),
            ("", "Unknown browser"),
        ] {
            assert_eq!(Browser::of(user_agent).to_string(), shown, "{user_agent}");
        }
    }
}
