//! Any key: no panic, and what is accepted has the format and the checksum of a key.
#![no_main]

use intake_domain::{Environment, KeyFormat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let format = KeyFormat::new(&"intake".parse().expect("a prefix"), Environment::Development);
    let whole = format!("{}{text}", format.head());
    for candidate in [text, &whole] {
        let Ok(key) = format.parse(candidate) else { continue };
        assert_eq!(key.expose(), candidate);
        assert!(candidate.starts_with("intake_demo_") && candidate.len() == "intake_demo_".len() + 36);
        assert!(candidate["intake_demo_".len()..].bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }
    // A prefix is text from outside, too.
    if let Ok(prefix) = text.parse() {
        let format = KeyFormat::new(&prefix, Environment::Production);
        let key = format.mint([5; 32]);
        assert_eq!(format.parse(key.expose()).as_ref(), Ok(&key));
    }
});
