//! Reads CSV as RFC 4180 has it, and nothing else. A reader that makes the best of a quote out of place moves text from
//! one cell into another, and the register would keep it; here such a row is refused. Never more than one row is in
//! memory.

use std::fmt;
use std::io::{self, BufRead};

/// The longest row in bytes. The service takes bodies of 64 KiB, and no field is longer than some hundred characters;
/// what is longer than this is a quote that is never closed. It is read to its end, but not kept.
pub(crate) const ROW_BYTES_MAX: usize = 1 << 20;

/// A CSV file.
pub(crate) struct StrictCsv<Source> {
    source: Source,
    delimiter: u8,
    cells: Cells,
    /// Number of bytes that have been read.
    pub(crate) read: u64,
    /// The number of the last row as a spreadsheet shows it: a blank line is a row, and so is a cell of several lines.
    pub(crate) row: u64,
    /// The line that is being read, which is not the row once a cell has had line breaks.
    line: u64,
    /// True if the last byte was a carriage return, which a line feed may complete.
    is_after_return: bool,
}

/// The cells of a row.
#[derive(Default)]
pub(crate) struct Cells {
    text: Vec<u8>,
    ends: Vec<usize>,
    /// The first and the last line of the row.
    lines: (u64, u64),
}

/// Reason why a row is not RFC 4180.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    QuoteInside { cell: usize },
    TextAfterQuote { cell: usize, text: u8 },
    NeverClosed { cell: usize, line: u64 },
    TooLong,
}

/// A row that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) fault: Fault,
    lines: (u64, u64),
}

/// The place of the next byte in a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    CellBegins,
    Unquoted,
    Quoted,
    QuoteClosed,
    /// Behind a fault: what is left of the line is not read.
    Skipped,
}

/// A row that is being read.
struct Scan {
    place: Place,
    fault: Option<Fault>,
    /// The line on which the last quote was opened.
    quote_line: u64,
    bytes: usize,
}

impl<Source: BufRead> StrictCsv<Source> {
    pub(crate) fn new(source: Source, delimiter: u8) -> Self {
        let cells = Cells::default();
        Self { source, delimiter, cells, read: 0, row: 0, line: 1, is_after_return: false }
    }

    /// Passes over the rows before the one of this number, whatever they are.
    pub(crate) fn pass_to(&mut self, row: u64) -> io::Result<()> {
        while self.row + 1 < row && self.read_row()?.is_some() {}
        Ok(())
    }

    /// The next row that is not blank; none after the last one.
    pub(crate) fn next(&mut self) -> io::Result<Option<Result<&Cells, Broken>>> {
        loop {
            let Some((mut scan, is_ended)) = self.read_row()? else { return Ok(None) };
            if scan.place == Place::CellBegins && self.cells.len() == 0 {
                continue;
            }
            if !is_ended && scan.place == Place::Quoted {
                scan.fault = Some(Fault::NeverClosed { cell: self.cells.len() + 1, line: scan.quote_line });
            } else if scan.bytes > ROW_BYTES_MAX {
                scan.fault = scan.fault.or(Some(Fault::TooLong));
            }
            self.cells.end_cell();
            let lines = self.cells.lines;
            return Ok(Some(scan.fault.map_or(Ok(&self.cells), |fault| Err(Broken { fault, lines }))));
        }
    }

    /// Reads the next row that has a text in a cell; none after the last one.
    pub(crate) fn next_filled<T>(&mut self, read: impl FnOnce(Result<&Cells, Broken>) -> T) -> io::Result<Option<T>> {
        loop {
            match self.next()? {
                Some(Ok(cells)) if cells.text.is_empty() => {}
                row => return Ok(row.map(read)),
            }
        }
    }

    /// Reads a row, and whether a line break ended it and not the end of the file; none after the last one.
    fn read_row(&mut self) -> io::Result<Option<(Scan, bool)>> {
        let mut scan = Scan { place: Place::CellBegins, fault: None, quote_line: self.line, bytes: 0 };
        self.cells.clear(self.line);
        let is_ended = self.read_to_end(&mut scan)?;
        if !is_ended && scan.bytes == 0 {
            return Ok(None);
        }
        self.row += 1;
        Ok(Some((scan, is_ended)))
    }

    /// Reads to the end of a row. Gives whether a line break ended it and not the end of the file.
    fn read_to_end(&mut self, scan: &mut Scan) -> io::Result<bool> {
        loop {
            let buffer = self.source.fill_buf()?;
            if buffer.is_empty() {
                return Ok(false);
            }
            let mut used = 0;
            let mut is_ended = false;
            for byte in buffer {
                used += 1;
                let completes_return = self.is_after_return && *byte == b'\n';
                self.is_after_return = *byte == b'\r';
                if completes_return && scan.place != Place::Quoted {
                    // It belongs to the line break that ended the row before.
                    continue;
                }
                self.cells.lines.1 = self.line;
                self.line += u64::from(matches!(byte, b'\r' | b'\n') && !completes_return);
                if scan.take(*byte, self.delimiter, self.cells.lines.1, &mut self.cells) {
                    is_ended = true;
                    break;
                }
            }
            self.source.consume(used);
            self.read += used as u64;
            if is_ended {
                return Ok(true);
            }
        }
    }
}

impl Scan {
    /// Takes the next byte of a row. Gives whether it ends the row.
    fn take(&mut self, byte: u8, delimiter: u8, line: u64, cells: &mut Cells) -> bool {
        self.bytes += 1;
        let is_kept = self.bytes <= ROW_BYTES_MAX;
        let cell = cells.len() + 1;
        match (self.place, byte) {
            (Place::Quoted, b'"') => self.place = Place::QuoteClosed,
            (Place::Quoted, _) if is_kept => cells.text.push(byte),
            (Place::Quoted, _) => {}
            (_, b'\r' | b'\n') => return true,
            (Place::Skipped, _) => {}
            (_, byte) if byte == delimiter => {
                self.place = Place::CellBegins;
                if is_kept {
                    cells.end_cell();
                }
            }
            (Place::CellBegins, b'"') => {
                self.place = Place::Quoted;
                self.quote_line = line;
            }
            (Place::QuoteClosed, b'"') => {
                self.place = Place::Quoted;
                if is_kept {
                    cells.text.push(byte);
                }
            }
            (Place::QuoteClosed, text) => self.stop(Fault::TextAfterQuote { cell, text }),
            (Place::Unquoted, b'"') => self.stop(Fault::QuoteInside { cell }),
            (Place::CellBegins | Place::Unquoted, _) => {
                self.place = Place::Unquoted;
                if is_kept {
                    cells.text.push(byte);
                }
            }
        }
        false
    }

    fn stop(&mut self, fault: Fault) {
        self.fault = Some(fault);
        self.place = Place::Skipped;
    }
}

impl Cells {
    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// One by one, without the quotes around them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut begin = 0;
        self.ends.iter().map(move |end| {
            let cell = self.text.get(begin..*end).unwrap_or_default();
            begin = *end;
            cell
        })
    }

    /// Returns what a message about the row should add: where one row is several lines, a quote may be out of place.
    pub(crate) fn span(&self) -> Span {
        Span(self.lines)
    }

    fn clear(&mut self, line: u64) {
        self.text.clear();
        self.ends.clear();
        self.lines = (line, line);
    }

    fn end_cell(&mut self) {
        self.ends.push(self.text.len());
    }
}

/// The first and the last line of a row, both named where they differ.
pub(crate) struct Span((u64, u64));

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            (first, last) if first == last => Ok(()),
            (first, last) => write!(f, " (lines {first} to {last} of the file were read as this row)"),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = Span(self.lines);
        match self.fault {
            Fault::QuoteInside { cell } => {
                write!(f, "cell {cell} has a quote in it, so it must be quoted as a whole and the quote doubled{span}")
            }
            Fault::TextAfterQuote { cell, .. } => {
                write!(f, "cell {cell} continues after its closing quote: a quote within a cell must be doubled{span}")
            }
            Fault::NeverClosed { cell, line } => {
                write!(f, "a quote is never closed: it opens cell {cell} on line {line}, and the file ends within it")
            }
            Fault::TooLong => write!(f, "the row is longer than 1 MiB{span}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of each row and its cells, or its fault.
    fn rows(text: &str) -> Vec<(u64, Result<Vec<String>, Fault>)> {
        // A buffer of three bytes, so that every boundary falls somewhere.
        let mut csv = StrictCsv::new(io::BufReader::with_capacity(3, text.as_bytes()), b',');
        let mut rows = Vec::new();
        loop {
            let row = match csv.next().unwrap() {
                None => break,
                Some(Ok(cells)) => Ok(cells.iter().map(|cell| String::from_utf8(cell.to_vec()).unwrap()).collect()),
                Some(Err(broken)) => Err(broken.fault),
            };
            rows.push((csv.row, row));
        }
        assert_eq!(csv.read, text.len() as u64);
        rows
    }

    fn read(cells: &[&str]) -> Result<Vec<String>, Fault> {
        Ok(cells.iter().map(|cell| (*cell).to_owned()).collect())
    }

    #[test]
    fn everything_that_the_standard_allows_is_read_exactly() {
        for line_break in ["\n", "\r\n", "\r"] {
            let text = "a,b\n\"a,b\",\"\"\n\"x\"\"y\"\"\",\n , z \n,\n\"\"\nlast".replace('\n', line_break);
            let cells: [&[&str]; 7] =
                [&["a", "b"], &["a,b", ""], &["x\"y\"", ""], &[" ", " z "], &["", ""], &[""], &["last"]];
            let expected: Vec<_> = (1..).zip(cells).map(|(number, cells)| (number, read(cells))).collect();
            assert_eq!(rows(&text), expected, "{line_break:?}");
        }
        assert_eq!(rows("\"a\r\nb\nc\rd\",e\r\n"), [(1, read(&["a\r\nb\nc\rd", "e"]))]);
        assert_eq!(rows(""), []);
    }

    #[test]
    fn rows_are_counted_as_a_spreadsheet_counts_them() {
        let expected =
            |first| [(first, read(&["a", "b"])), (first + 3, read(&["c\n\nd", "e"])), (first + 5, read(&["f"]))];
        for line_break in ["\n", "\r\n", "\r"] {
            let text = |text: &str| text.replace('\n', line_break);
            let expected = expected(1).map(|(number, cells)| {
                (number, cells.map(|cells| cells.iter().map(|cell| text(cell)).collect::<Vec<_>>()))
            });
            assert_eq!(rows(&text("a,b\n\n\n\"c\n\nd\",e\n\nf\n\n\n")), expected, "{line_break:?}");
        }
        assert_eq!(rows("\n\na,b\n\n\n\"c\n\nd\",e\n\nf"), expected(3));
        assert_eq!(rows("\n\r\n\n"), []);
    }

    #[test]
    fn a_quote_out_of_place_breaks_its_row_alone() {
        let after = |cell, text| Err(Fault::TextAfterQuote { cell, text });
        let inside = |cell| Err(Fault::QuoteInside { cell });
        for (row, fault) in [
            ("Jo,\"O\"Neil\"\",x", after(2, b'N')),
            ("\"Big999,\"Row, 999\",x", after(1, b'R')),
            ("\"Ann\"Maree,x", after(1, b'M')),
            ("\"Ann\" ,x", after(1, b' ')),
            ("Ann, \"x\"", inside(2)),
            ("Ann \"Annie\" Maree,x", inside(1)),
            ("6' 2\",x", inside(1)),
            ("\"two\nlines\"and,more", after(1, b'a')),
        ] {
            for line_break in ["\n", "\r\n", "\r"] {
                let text = format!("a,b{line_break}{row}{line_break}c,d");
                assert_eq!(
                    rows(&text),
                    [(1, read(&["a", "b"])), (2, fault.clone()), (3, read(&["c", "d"]))],
                    "{text:?}"
                );
            }
        }
    }

    #[test]
    fn an_unclosed_quote_is_reported_with_its_line() {
        let never_closed = |cell, line| Err(Fault::NeverClosed { cell, line });
        assert_eq!(rows("a,b\nc,\"d\ne,f\n"), [(1, read(&["a", "b"])), (2, never_closed(2, 2))]);
        assert_eq!(rows("\"a\nb\",\"c\nd"), [(1, never_closed(2, 2))]);
        assert_eq!(rows("\""), [(1, never_closed(1, 1))]);
        assert_eq!(rows("\"\"\"\""), [(1, read(&["\""]))]);
    }

    #[test]
    fn a_row_without_end_is_not_kept_in_memory() {
        let long = format!("a\n\"{}\"\n{}\nb", "x".repeat(3 * ROW_BYTES_MAX), ",".repeat(2 * ROW_BYTES_MAX));
        let mut csv = StrictCsv::new(long.as_bytes(), b',');
        assert!(csv.next().unwrap().unwrap().is_ok());
        for _ in 0..2 {
            assert_eq!(csv.next().unwrap().unwrap().err().unwrap().fault, Fault::TooLong);
        }
        assert!(csv.cells.text.len() <= ROW_BYTES_MAX && csv.cells.ends.len() <= ROW_BYTES_MAX + 1);
        assert!(csv.next().unwrap().unwrap().is_ok());
        assert_eq!(csv.row, 4);
    }

    #[test]
    fn a_fault_says_how_far_its_row_reaches() {
        let text = "a,b\nc,\"d,e\nf,g\nh,\"i\"\n";
        let mut csv = StrictCsv::new(text.as_bytes(), b',');
        csv.next().unwrap();
        let broken = csv.next().unwrap().unwrap().err().unwrap();
        assert_eq!(
            broken.to_string(),
            "cell 2 continues after its closing quote: a quote within a cell must be doubled \
             (lines 2 to 4 of the file were read as this row)"
        );
        assert!(csv.next().unwrap().is_none());
    }
}
