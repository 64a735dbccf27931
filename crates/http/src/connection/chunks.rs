//! Where a chunked body ends, and whether it is well formed. As strict as RFC 9112, because a program that reads the
//! body differently would find a different request after it.

/// Progress of a chunked body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunks {
    next: Next,
    /// The size of the chunk; once its data has begun, how much of it is still to come.
    size: u64,
}

/// Part that must come next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    #[default]
    FirstDigit,
    Digit,
    Space,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerOrEnd,
    Trailer,
    TrailerLf,
    EndLf,
    Nothing,
    /// A byte came that was not allowed.
    Broken,
}

impl Chunks {
    /// Returns how many of these bytes belong to the body, stopping before the first that cannot.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while let Some(byte) = bytes.get(taken).copied() {
            if self.next == Next::Data {
                let there = bytes.len() - taken;
                let length = usize::try_from(self.size).unwrap_or(usize::MAX).min(there);
                self.size -= length as u64;
                taken += length;
                if self.size == 0 {
                    self.next = Next::DataCr;
                }
                continue;
            }
            self.next = self.after(byte);
            if self.are_broken() {
                break;
            }
            taken += 1;
            if self.are_over() {
                break;
            }
        }
        taken
    }

    /// Returns whether the body is complete.
    pub(crate) fn are_over(self) -> bool {
        self.next == Next::Nothing
    }

    /// Returns whether the body is malformed.
    pub(crate) fn are_broken(self) -> bool {
        self.next == Next::Broken
    }

    fn after(&mut self, byte: u8) -> Next {
        match (self.next, byte) {
            (Next::FirstDigit | Next::Digit, _) if byte.is_ascii_hexdigit() => self.add_digit(byte),
            (Next::Digit | Next::Space, b' ' | b'\t') => Next::Space,
            (Next::Digit | Next::Space, b';') => Next::Extension,
            (Next::Digit | Next::Space | Next::Extension, b'\r') => Next::SizeLf,
            (Next::Extension, _) if is_text(byte) => Next::Extension,
            (Next::SizeLf, b'\n') if self.size == 0 => Next::TrailerOrEnd,
            (Next::SizeLf, b'\n') => Next::Data,
            (Next::DataCr, b'\r') => Next::DataLf,
            (Next::DataLf, b'\n') => Next::FirstDigit,
            (Next::TrailerOrEnd, b'\r') => Next::EndLf,
            (Next::TrailerOrEnd | Next::Trailer, _) if is_text(byte) => Next::Trailer,
            (Next::Trailer, b'\r') => Next::TrailerLf,
            (Next::TrailerLf, b'\n') => Next::TrailerOrEnd,
            (Next::EndLf, b'\n') => Next::Nothing,
            _ => Next::Broken,
        }
    }

    fn add_digit(&mut self, digit: u8) -> Next {
        let before = if self.next == Next::FirstDigit { 0 } else { self.size };
        let digit = char::from(digit).to_digit(16).map(u64::from);
        match before.checked_mul(16).zip(digit).and_then(|(size, digit)| size.checked_add(digit)) {
            Some(size) => {
                self.size = size;
                Next::Digit
            }
            None => Next::Broken,
        }
    }
}

/// Returns whether a byte may stand in an extension or a trailer.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many bytes are taken, and what becomes of the body, fed in pieces of this size.
    fn fed(body: &[u8], piece: usize) -> (usize, Next) {
        let mut chunks = Chunks::default();
        let mut taken = 0;
        for piece in body.chunks(piece) {
            let length = chunks.advance(piece);
            taken += length;
            if length < piece.len() || chunks.are_over() {
                break;
            }
        }
        (taken, chunks.next)
    }

    #[test]
    fn a_chunked_body_ends_where_it_says_so_however_it_is_cut() {
        let bodies: [&[u8]; 5] = [
            b"0\r\n\r\n",
            b"5\r\nhello\r\n0\r\n\r\n",
            b"00a \t;name=\"value\"\r\n0123456789\r\n1\r\n\n\r\n000\r\n\r\n",
            b"1;a\r\nx\r\n0;b\r\nTrailer: one\r\nOther:\ttwo\r\n\r\n",
            b"C\r\n0\r\n\r\nGET / H\r\n0\r\n\r\n",
        ];
        for body in bodies {
            for piece in 1..=body.len() {
                let followed = [body, b"GET / HTTP/1.1\r\n"].concat();
                assert_eq!(fed(&followed, piece), (body.len(), Next::Nothing), "{}", body.escape_ascii());
            }
        }
    }

    #[test]
    fn a_malformed_body_is_broken_at_its_first_wrong_byte() {
        let bodies: [(&[u8], usize); 14] = [
            (b"0x2\r\nhi\r\n0\r\n\r\n", 1),
            (b"\r\n", 0),
            (b" 2\r\nhi", 0),
            (b"-1\r\n", 0),
            (b"2\nhi\r\n0\r\n\r\n", 1),
            (b"2\rhi", 2),
            (b"2 2\r\nhi", 2),
            (b"2;a\nb\r\nhi\r\n0\r\n\r\n", 3),
            (b"2\r\nhi\n0\r\n\r\n", 5),
            (b"2\r\nhiX\n0\r\n\r\n", 5),
            (b"2\r\nhi\r0", 6),
            (b"10000000000000000\r\n", 16),
            (b"0\r\nTrailer: a\n\r\n", 13),
            (b"0\r\n\n", 3),
        ];
        for (body, taken) in bodies {
            for piece in 1..=body.len() {
                assert_eq!(fed(body, piece), (taken, Next::Broken), "{}", body.escape_ascii());
            }
        }
        assert_eq!(fed(b"FFFFFFFFFFFFFFFF\r\n", 4), (18, Next::Data));
    }
}
