//! Where a request ends in the bytes of a connection, so that it is passed on alone. actix-http then parses it and
//! decides what it means; input on which actix-http would close the connection without an answer is found here first. A
//! fault in this module must never pass on more than one request, or turn one request into another.

use memchr::memchr;

use crate::connection::chunks::Chunks;

/// The most bytes of a head: far more than a key, an id and a browser's cookies need.
const HEAD_MAX: usize = 16 * 1024;
/// A byte that actix-http refuses anywhere in a head.
const NOT_IN_HEADS: u8 = 0;
/// Every number with this many digits fits into 64 bits.
const LENGTH_DIGITS: usize = 19;

/// Progress of the request that is coming in.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    part: Part,
    head: Head,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    /// A body of known length, and how much of it is still to come.
    Sized(u64),
    Chunked(Chunks),
    /// The whole request has been seen.
    Whole,
    /// The request or its body is malformed.
    Broken,
    /// The head is larger than [`HEAD_MAX`].
    TooLarge,
}

/// Fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It states several lengths, or one that is no number.
    Length,
    /// It names another version than 1.0 and 1.1.
    Version,
    /// A line of its head continues the one before.
    Folded,
    /// It names no host, or several.
    Host,
    /// Any other.
    Form,
}

/// Facts of the head that decide where the request ends.
#[derive(Debug, Default)]
struct Head {
    length: usize,
    /// The beginning of a line that comes in more than one piece.
    line: Vec<u8>,
    /// A line that is not empty has come: empty lines may precede a request.
    has_begun: bool,
    /// The first line names the version that is spoken here.
    is_http: bool,
    /// The first line names a version that is not spoken here.
    is_other_version: bool,
    /// A line of a header begins with a space.
    is_folded: bool,
    body_length: u64,
    is_chunked: bool,
    hosts: usize,
    /// Number of lengths that the head states, of which a malformed one counts twice.
    lengths: usize,
}

impl Framing {
    /// Takes the next bytes of the connection and returns how many of them belong to the request. A lone LF at the end
    /// of a line is overwritten, so that actix-http refuses the request, too. So are the digits of a `Content-Length`
    /// that is beyond any number: actix-http would call the request malformed, and not its body too large.
    pub(crate) fn advance(&mut self, bytes: &mut [u8]) -> usize {
        let mut taken = 0;
        while let Some(rest) = bytes.get_mut(taken..).filter(|rest| !rest.is_empty()) {
            taken += match &mut self.part {
                Part::Head => {
                    let (length, part) = self.head.advance(rest);
                    self.part = part;
                    length
                }
                Part::Sized(missing) => {
                    let length = usize::try_from(*missing).unwrap_or(usize::MAX).min(rest.len());
                    *missing -= length as u64;
                    if *missing == 0 {
                        self.part = Part::Whole;
                    }
                    length
                }
                Part::Chunked(chunks) => {
                    let length = chunks.advance(rest);
                    if chunks.are_broken() {
                        self.part = Part::Broken;
                    } else if chunks.are_over() {
                        self.part = Part::Whole;
                    }
                    length
                }
                Part::Whole | Part::Broken | Part::TooLarge => break,
            };
        }
        taken
    }

    /// Returns whether the request is complete.
    pub(crate) fn is_whole(&self) -> bool {
        self.part == Part::Whole
    }

    /// Returns whether a body has begun and not ended.
    pub(crate) fn is_in_body(&self) -> bool {
        matches!(self.part, Part::Sized(_) | Part::Chunked(_))
    }

    /// Returns whether what came can never become a valid request.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.part, Part::Broken | Part::TooLarge)
    }

    /// Returns whether it is broken because its head is too large.
    pub(crate) fn is_too_large(&self) -> bool {
        self.part == Part::TooLarge
    }

    /// The fault of a request that actix-http has refused, as far as it is known.
    pub(crate) fn fault(&self) -> Fault {
        match &self.head {
            Head { lengths: 2.., .. } => Fault::Length,
            _ if self.is_broken() => Fault::Form,
            Head { is_other_version: true, .. } => Fault::Version,
            Head { is_folded: true, .. } => Fault::Folded,
            Head { is_http: true, hosts: 0 | 2.., .. } => Fault::Host,
            _ => Fault::Form,
        }
    }

    /// Begins the next request.
    pub(crate) fn next(&mut self) {
        *self = Self::default();
    }
}

impl Head {
    /// Returns how many of these bytes belong to the head, and the part that comes next.
    fn advance(&mut self, bytes: &mut [u8]) -> (usize, Part) {
        let mut taken = 0;
        while let Some(rest) = bytes.get_mut(taken..).filter(|rest| !rest.is_empty()) {
            let end = memchr(b'\n', rest);
            let length = end.map_or(rest.len(), |end| end + 1);
            if self.length + length > HEAD_MAX {
                return (taken, Part::TooLarge);
            }
            self.length += length;
            taken += length;
            let Some(line) = rest.get_mut(..length) else { break };
            shorten_length(&self.line, line);
            if end.is_none() {
                self.line.extend_from_slice(line);
                break;
            }
            if let Some(part) = self.take_line(line) {
                if part == Part::Broken {
                    rest.iter_mut().take(length).skip(length - 1).for_each(|end| *end = NOT_IN_HEADS);
                }
                return (taken, part);
            }
        }
        (taken, Part::Head)
    }

    /// Reads a line, or the rest of one. Returns the part that comes next, unless that is another line.
    fn take_line(&mut self, line: &[u8]) -> Option<Part> {
        if self.line.is_empty() {
            return self.read_line(line);
        }
        let mut whole = std::mem::take(&mut self.line);
        whole.extend_from_slice(line);
        self.read_line(&whole)
    }

    fn read_line(&mut self, line: &[u8]) -> Option<Part> {
        // Programs disagree about whether a lone LF ends a line, and thus about where a request ends.
        let Some(line) = line.strip_suffix(b"\r\n") else { return Some(Part::Broken) };
        if line.is_empty() {
            return self.has_begun.then(|| self.body());
        }
        if self.has_begun {
            self.is_folded |= line.starts_with(b" ") || line.starts_with(b"\t");
        } else {
            self.is_http = line.ends_with(b" HTTP/1.1");
            let version = line.rsplit(|byte| *byte == b' ').next().and_then(|word| word.strip_prefix(b"HTTP/"));
            self.is_other_version = version.is_some_and(|version| version != b"1.0" && version != b"1.1");
            self.has_begun = true;
        }
        if let Some(value) = value(line, b"content-length") {
            let length = value.parse();
            self.lengths += if length.is_ok() { 1 } else { 2 };
            self.body_length = length.unwrap_or_default();
        } else if let Some(value) = value(line, b"transfer-encoding") {
            self.lengths += 1;
            self.is_chunked = value.eq_ignore_ascii_case("chunked");
        } else if value(line, b"host").is_some() {
            self.hosts += 1;
        }
        None
    }

    fn body(&self) -> Part {
        match self.body_length {
            _ if self.is_chunked => Part::Chunked(Chunks::default()),
            0 => Part::Whole,
            length => Part::Sized(length),
        }
    }
}

/// Blanks the digits of a `Content-Length` that would overflow a number. `before` is the part of the line already read.
fn shorten_length(before: &[u8], line: &mut [u8]) {
    let name = b"content-length";
    if before.len() + line.len() <= name.len() + LENGTH_DIGITS {
        return;
    }
    let whole = [before, &*line].concat();
    if value(&whole, name).is_none() {
        return;
    }
    let insignificant = whole.iter().skip(name.len()).take_while(|byte| b": \t0".contains(byte)).count();
    let kept = (name.len() + insignificant + LENGTH_DIGITS).saturating_sub(before.len());
    line.iter_mut().skip(kept).filter(|byte| byte.is_ascii_digit()).for_each(|digit| *digit = b' ');
}

/// The value of a header line with this name.
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a str> {
    // The position of the colon rules out nearly every line.
    if line.get(name.len()) != Some(&b':') {
        return None;
    }
    let (found, value) = line.split_at_checked(name.len())?;
    if !found.eq_ignore_ascii_case(name) {
        return None;
    }
    std::str::from_utf8(value.get(1..)?).ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many bytes belong to the first request and what becomes of it, fed in pieces of this size.
    fn fed(bytes: &[u8], piece: usize) -> (usize, Framing) {
        let mut framing = Framing::default();
        let mut taken = 0;
        for piece in bytes.chunks(piece) {
            let length = framing.advance(&mut piece.to_vec());
            taken += length;
            if length < piece.len() || framing.is_whole() || framing.is_broken() {
                break;
            }
        }
        (taken, framing)
    }

    #[test]
    fn a_request_ends_where_it_says_so_however_it_is_cut() {
        let requests: [&[u8]; 7] = [
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n\r\n\r\nx",
            b"POST / HTTP/1.1\r\ncontent-length:\t 0 \r\nHost: a\r\n\r\n",
            b"POST / HTTP/1.1\r\nTRANSFER-ENCODING: Chunked\r\n\r\n2\r\n\n\n\r\n0\r\n\r\n",
            b"POST / HTTP/1.1\r\nX-Content-Length: 9\r\nContent-Lengthy: 9\r\n\r\n",
            b"CONNECT a:1 HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
        ];
        for request in requests {
            let followed = [request, b"GET /next HTTP/1.1\r\n\r\n"].concat();
            for piece in 1..=followed.len() {
                let (taken, mut framing) = fed(&followed, piece);
                assert_eq!(taken, request.len(), "{}", request.escape_ascii());
                assert!(framing.is_whole() && !framing.is_broken());
                assert_eq!(framing.advance(&mut b"GET".to_vec()), 0);
                framing.next();
                assert_eq!(framing.advance(&mut b"GET".to_vec()), 3);
            }
        }
    }

    #[test]
    fn a_line_that_ends_with_a_lone_lf_is_refused() {
        let heads: [&[u8]; 5] = [
            b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nA: b\nContent-Length: 3\r\n\r\nabc",
        ];
        for head in heads {
            for piece in 1..=head.len() {
                assert!(fed(head, piece).1.is_broken(), "{}", head.escape_ascii());
            }
            let mut seen = head.to_vec();
            let taken = Framing::default().advance(&mut seen);
            assert_eq!(seen[taken - 1], NOT_IN_HEADS);
            assert_eq!(seen[..taken - 1], head[..taken - 1]);
        }
    }

    #[test]
    fn a_length_beyond_any_number_becomes_one_that_is_still_too_large() {
        let with = |length: &str| {
            format!("POST / HTTP/1.1\r\nContent-Length: {length} \r\nHost: a99999999999999999999\r\n\r\n")
        };
        let cases = [
            ("9".repeat(20), "9".repeat(19)),
            ("9".repeat(200), "9".repeat(19)),
            (format!("{}12", "0".repeat(40)), format!("{}12", "0".repeat(40))),
            (format!("00{}", "1".repeat(40)), format!("00{}", "1".repeat(19))),
            ("9".repeat(19), "9".repeat(19)),
        ];
        for (length, shortened) in cases {
            let (sent, expected) = (with(&length), with(&format!("{shortened:<0$}", length.len())));
            for piece in 1..=sent.len() {
                let mut seen = sent.clone().into_bytes();
                let mut framing = Framing::default();
                for piece in seen.chunks_mut(piece) {
                    assert_eq!(framing.advance(piece), piece.len());
                }
                assert_eq!(String::from_utf8(seen).unwrap(), expected);
                assert_eq!(framing.part, Part::Sized(shortened.parse().unwrap()));
            }
        }
        let mut other = with(&"9".repeat(20)).replace("Content", "Kontent").into_bytes();
        let sent = other.clone();
        Framing::default().advance(&mut other);
        assert_eq!(other, sent);
    }

    #[test]
    fn a_head_has_a_largest_size_and_a_body_has_none() {
        let line = [b"A: ".to_vec(), vec![b'a'; HEAD_MAX], b"\r\n\r\n".to_vec()].concat();
        for piece in [100, HEAD_MAX, line.len()] {
            let (taken, framing) = fed(&line, piece);
            assert!(framing.is_too_large() && taken <= HEAD_MAX);
        }
        let head = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", u64::MAX);
        let mut framing = Framing::default();
        assert_eq!(framing.advance(&mut head.into_bytes()), 57);
        assert_eq!(framing.advance(&mut vec![b'a'; 10 * HEAD_MAX]), 10 * HEAD_MAX);
        assert!(!framing.is_whole() && !framing.is_broken());
    }
}
