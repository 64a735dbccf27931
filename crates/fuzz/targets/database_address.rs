//! Any address of a database, in a build without TLS: what is accepted leads, as libpq reads it, to this machine alone,
//! and a password in it is noticed. libpq's reading is written down here once more, after its documentation and
//! behaviour.
#![no_main]

use std::collections::HashMap;
use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use percent_encoding::percent_decode;

use database::connecting::url::DatabaseUrl;

#[path = "../../infra/src/database"]
#[expect(dead_code, reason = "a part is for connections")]
mod database {
    pub(crate) mod connecting {
        pub(crate) mod conninfo;
        pub(crate) mod durability;
        pub(crate) mod url;
        pub(crate) mod url_error;
    }
}

fuzz_target!(|text: &str| {
    let Ok(url) = text.parse::<DatabaseUrl>() else { return };
    // libpq ends at the first zero byte, which cannot be passed to it.
    if text.contains('\0') {
        return;
    }
    for address in [url.clone()].into_iter().chain(url.each_host()).chain(url.at("127.0.0.1", 5433)) {
        // What libpq refuses leads nowhere.
        let Some(read) = read(address.expose().as_bytes()) else { continue };
        assert_eq!(address.expose().parse().as_ref(), Ok(&address), "what was added is not added again");
        for name in ["host", "hostaddr"] {
            let hosts = read.get(name).map(Vec::as_slice).unwrap_or_default();
            for host in hosts.split(|byte| *byte == b',').filter(|host| !host.is_empty()) {
                assert!(is_local(host), "{name} {}", host.escape_ascii());
            }
        }
        assert!(!read.contains_key("service") || read["service"].is_empty());
        let holds = |name| read.get(name).is_some_and(|value: &Vec<u8>| !value.is_empty());
        assert!(!(holds("password") || holds("sslpassword")) || address.has_password());
        assert!(["connect_timeout", "tcp_user_timeout"].iter().all(|name| read.contains_key(*name)));
    }
});

fn is_local(host: &[u8]) -> bool {
    let text = str::from_utf8(host).unwrap_or_default();
    matches!(host[0], b'/' | b'@') || text == "localhost" || text.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

type Read = HashMap<String, Vec<u8>>;

fn read(address: &[u8]) -> Option<Read> {
    match [b"postgres://".as_slice(), b"postgresql://"].iter().find_map(|scheme| address.strip_prefix(*scheme)) {
        Some(rest) => uri(rest),
        None => keywords(address),
    }
}

fn uri(rest: &[u8]) -> Option<Read> {
    let mut read = Read::new();
    let mut put = |name: &str, value: &[u8]| Some(read.insert(name.to_owned(), decoded(value)?));
    let at = |text: &[u8], ends: &[u8]| text.iter().position(|byte| ends.contains(byte)).unwrap_or(text.len());
    let (mut rest, credentials) = match at(rest, b"@/") {
        end if rest.get(end) == Some(&b'@') => (&rest[end + 1..], &rest[..end]),
        _ => (rest, &b""[..]),
    };
    let user = at(credentials, b":");
    put("user", &credentials[..user])?;
    put("password", credentials.get(user + 1..).unwrap_or_default())?;
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    loop {
        let host = match rest.strip_prefix(b"[") {
            Some(inner) => {
                let end = inner.iter().position(|byte| *byte == b']').filter(|end| *end > 0)?;
                rest = &inner[end + 1..];
                if rest.first().is_some_and(|next| !b":/?,".contains(next)) {
                    return None;
                }
                &inner[..end]
            }
            None => {
                let (host, tail) = rest.split_at(at(rest, b":/?,"));
                rest = tail;
                host
            }
        };
        hosts.push(host);
        if let Some(tail) = rest.strip_prefix(b":") {
            let (port, tail) = tail.split_at(at(tail, b"/?,"));
            ports.push(port);
            rest = tail;
        }
        match rest.strip_prefix(b",") {
            Some(tail) => rest = tail,
            None => break,
        }
    }
    put("host", &hosts.join(&b','))?;
    put("port", &ports.join(&b','))?;
    if let Some(tail) = rest.strip_prefix(b"/") {
        let end = at(tail, b"?");
        put("dbname", &tail[..end])?;
        rest = &tail[end..];
    }
    let parameters = rest.strip_prefix(b"?").unwrap_or_default();
    for pair in parameters.split(|byte| *byte == b'&').filter(|_| !parameters.is_empty()) {
        let equals = at(pair, b"=");
        let value = pair.get(equals + 1..).filter(|value| !value.contains(&b'='))?;
        put(&String::from_utf8(decoded(&pair[..equals])?).ok()?, value)?;
    }
    Some(read)
}

/// None: an escape is malformed, or stands for a zero byte.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut escapes = text.split(|byte| *byte == b'%').skip(1);
    let is_escape =
        |tail: &[u8]| tail.get(..2).is_some_and(|digits| digits != b"00" && digits.iter().all(u8::is_ascii_hexdigit));
    escapes.all(is_escape).then(|| percent_decode(text).collect())
}

fn keywords(text: &[u8]) -> Option<Read> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0B;
    let trimmed = |text: &'_ [u8]| text.iter().take_while(|byte| is_space(byte)).count();
    let mut read = Read::new();
    let mut rest = &text[trimmed(text)..];
    while !rest.is_empty() {
        let length = rest.iter().take_while(|byte| **byte != b'=' && !is_space(byte)).count();
        let (name, tail) = rest.split_at(length);
        let tail = tail[trimmed(tail)..].strip_prefix(b"=")?;
        let mut value = Vec::new();
        let mut bytes = tail[trimmed(tail)..].iter();
        let is_quoted = bytes.as_slice().first() == Some(&b'\'');
        if is_quoted {
            bytes.next();
        }
        loop {
            match bytes.next() {
                None if is_quoted => return None,
                None => break,
                Some(b'\'') if is_quoted => break,
                Some(byte) if !is_quoted && is_space(byte) => break,
                Some(b'\\') => value.extend(bytes.next()),
                Some(byte) => value.push(*byte),
            }
        }
        read.insert(String::from_utf8(name.to_vec()).ok()?, value);
        rest = bytes.as_slice();
        rest = &rest[trimmed(rest)..];
    }
    Some(read)
}
