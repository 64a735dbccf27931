//! Reads both of libpq's forms of an address, the URI and the keywords, into keywords with their values.

use percent_encoding::percent_decode_str;

use crate::database::connecting::url_error::DatabaseUrlError;

/// The keywords of a connection and their values, each keyword once.
pub(crate) type Keywords = Vec<(String, String)>;

/// Beginnings of a URI.
const URI_PREFIXES: [&str; 2] = ["postgres://", "postgresql://"];

/// Reads an address in either form.
pub(crate) fn read(text: &str) -> Result<Keywords, DatabaseUrlError> {
    let pairs = match URI_PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        Some(rest) => of_uri(rest)?,
        None => of_keywords(text).filter(|pairs| !pairs.is_empty()).ok_or(DatabaseUrlError::Form)?,
    };
    let mut keywords = Keywords::new();
    pairs.into_iter().for_each(|(name, value)| put(&mut keywords, &name, &value));
    Ok(keywords)
}

/// Sets a keyword: of several values the last counts.
pub(crate) fn put(keywords: &mut Keywords, name: &str, value: &str) {
    match keywords.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => value.clone_into(known),
        None => keywords.push((name.to_owned(), value.to_owned())),
    }
}

/// The keyword form, for libpq.
pub(crate) fn print(keywords: &Keywords) -> String {
    let escaped = |value: &str| value.replace('\\', r"\\").replace('\'', r"\'");
    let printed = keywords.iter().map(|(name, value)| format!("{name}='{}'", escaped(value)));
    printed.collect::<Vec<_>>().join(" ")
}

fn of_uri(rest: &str) -> Result<Keywords, DatabaseUrlError> {
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = address.split_once('/').unwrap_or((address, ""));
    // A character of the password that is not escaped ends the password, or the authority, too early.
    // libpq looks for the end of the user up to the first slash, beyond a question mark, too.
    let up_to_slash = rest.split('/').next().unwrap_or_default();
    let users = [authority, address, up_to_slash].map(|part| part.matches('@').count());
    if users != [0; 3] && users != [1; 3] {
        return Err(DatabaseUrlError::Unescaped);
    }
    let (user, servers) = authority.split_once('@').unwrap_or(("", authority));
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    let (hosts, ports): (Vec<_>, Vec<_>) = servers.split(',').map(host_and_port).unzip();
    if ports.iter().any(|port| !port.chars().all(|c| c.is_ascii_digit())) {
        return Err(DatabaseUrlError::Unescaped);
    }
    let (hosts, ports) = (hosts.join(","), ports.join(","));
    let parts = [("user", user), ("password", password), ("host", &hosts), ("port", &ports), ("dbname", database)];
    let given = parts.into_iter().filter(|(_, value)| !value.is_empty());
    let mut pairs =
        given.map(|(name, value)| Ok((name.to_owned(), decoded(value)?))).collect::<Result<Keywords, _>>()?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(DatabaseUrlError::Form)?;
        pairs.push(match (decoded(name)?, decoded(value)?) {
            // The word of JDBC, which libpq knows in a URI alone.
            (name, value) if name == "ssl" && value == "true" => ("sslmode".to_owned(), "require".to_owned()),
            pair => pair,
        });
    }
    Ok(pairs)
}

fn host_and_port(server: &str) -> (&str, &str) {
    let bracketed = server.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match bracketed {
        Some((address, rest)) => (address, rest.strip_prefix(':').unwrap_or(rest)),
        None => server.split_once(':').unwrap_or((server, "")),
    }
}

fn decoded(text: &str) -> Result<String, DatabaseUrlError> {
    let is_escape = |escape: &str| escape.chars().take(2).filter(char::is_ascii_hexdigit).count() == 2;
    let value = percent_decode_str(text).decode_utf8().map_err(|_| DatabaseUrlError::Unescaped)?;
    if text.split('%').skip(1).all(is_escape) && !value.contains('\0') {
        Ok(value.into_owned())
    } else {
        Err(DatabaseUrlError::Unescaped)
    }
}

/// Reads the form `key = 'value'`. None: the text is not of this form.
fn of_keywords(text: &str) -> Option<Keywords> {
    let mut pairs = Keywords::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let (name, tail) = rest.split_once('=')?;
        let name = name.trim_end_matches(is_space);
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return None;
        }
        let (value, tail) = keyword_value(tail.trim_start_matches(is_space))?;
        pairs.push((name.to_owned(), value));
        rest = tail.trim_start_matches(is_space);
    }
    Some(pairs)
}

/// The value at the beginning of a text, and what follows. None: its quote is not closed, or nothing stands there.
fn keyword_value(text: &str) -> Option<(String, &str)> {
    let is_quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices().skip(usize::from(is_quoted));
    while let Some((index, c)) = characters.next() {
        match c {
            '\\' => value.push(characters.next()?.1),
            '\'' if is_quoted => return Some((value, text.get(index + 1..).unwrap_or_default())),
            c if !is_quoted && is_space(c) => return Some((value, text.get(index..).unwrap_or_default())),
            c => value.push(c),
        }
    }
    (!is_quoted && !text.is_empty()).then_some((value, ""))
}

/// Returns what libpq takes for a space.
fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0B'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> String {
        print(&read(text).unwrap())
    }

    #[test]
    fn both_forms_are_read_as_libpq_reads_them() {
        for (text, expected) in [
            (
                "postgres://u:p%40%27@db.example:5433/in%20take?sslmode=require",
                r"user='u' password='p@\'' host='db.example' port='5433' dbname='in take' sslmode='require'",
            ),
            ("postgresql://[::1]:5432,b/i", "host='::1,b' port='5432,' dbname='i'"),
            ("postgres://a/i?h%6Fst=c", "host='c' dbname='i'"),
            ("postgres://a:1/i?host=c&port=2&user=a@b", "host='c' port='2' dbname='i' user='a@b'"),
            ("postgres://u:p:q@%2Fvar%2Frun", "user='u' password='p:q' host='/var/run'"),
            ("postgres://@:1/?ssl=true", "port='1' sslmode='require'"),
            ("postgres:///", ""),
            (r" user = 'a\'host=b' host= /tmp\ 1 host='' ", r"user='a\'host=b' host=''"),
        ] {
            assert_eq!(printed(text), expected, "{text}");
        }
    }

    #[test]
    fn printed_text_is_read_again_unchanged() {
        for text in ["postgres://u:%5C%27%20%3D@h:1/d?options=-c%20a%3Db", r"user='it\'s' dbname=\'x\\"] {
            let once = printed(text);
            assert_eq!(printed(&once), once, "{text}");
        }
    }

    #[test]
    fn an_address_that_libpq_would_refuse_is_refused() {
        for text in [
            "user=u host=",
            r"user=u host=/tmp\",
            "host=a garbage",
            "host=a b c=d",
            "host='a",
            r"host='a\'",
            "intake",
            "postgres://h/d?sslmode",
            "",
            " ",
        ] {
            assert_eq!(read(text), Err(DatabaseUrlError::Form), "{text}");
        }
        for text in
            ["postgres://u:%E9@h/d", "postgres://u:%4@h/d", "postgres://h/d?user=%zz", "postgres://h/d?user=%00"]
        {
            assert_eq!(read(text), Err(DatabaseUrlError::Unescaped), "{text}");
        }
    }
}
