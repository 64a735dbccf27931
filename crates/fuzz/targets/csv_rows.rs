//! Any CSV: the rows are the same however the file is cut, and where every row is accepted, the reader of the crate
//! `csv-core` sees the same cells.
#![no_main]

use std::cell::RefCell;
use std::io::BufReader;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use libfuzzer_sys::fuzz_target;

use strict_csv::StrictCsv;

#[path = "../../import/src/strict_csv.rs"]
#[expect(dead_code, reason = "a part is for messages about rows")]
mod strict_csv;

/// The number of each row and its cells, or what is wrong with it.
type Rows = Vec<(u64, Result<Vec<Vec<u8>>, String>)>;

fuzz_target!(|input: (bool, u8, &[u8])| {
    let (is_semicolon, piece, text) = input;
    let delimiter = if is_semicolon { b';' } else { b',' };
    let rows = rows(text, delimiter, text.len());
    assert_eq!(rows, self::rows(text, delimiter, usize::from(piece)), "in pieces of {piece}");
    assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0), "row numbers grow");

    let Ok(accepted) = rows.into_iter().map(|(_, row)| row).collect::<Result<Vec<_>, _>>() else { return };
    assert_eq!(accepted, lenient_rows(text, delimiter));

    // A blank line is no row, so that a row of one empty cell needs its quotes.
    let quoted = |cell: &Vec<u8>| [b"\"", cell.as_slice(), b"\""].concat();
    let doubled = |cell: &Vec<u8>| cell.iter().flat_map(|byte| vec![*byte; 1 + usize::from(*byte == b'"')]).collect();
    let written = |row: &Vec<Vec<u8>>| row.iter().map(doubled).map(|cell| quoted(&cell)).collect::<Vec<_>>();
    let lines = accepted.iter().map(|row| written(row).join(&delimiter)).collect::<Vec<_>>().join(&b"\r\n"[..]);
    let again = self::rows(&lines, delimiter, lines.len());
    assert_eq!(accepted, again.into_iter().map(|(_, row)| row.expect("it was quoted")).collect::<Vec<_>>());
});

/// The rows as a reader sees them that makes the best of everything.
fn lenient_rows(text: &[u8], delimiter: u8) -> Vec<Vec<Vec<u8>>> {
    thread_local!(static READERS: RefCell<[Reader; 2]> =
        RefCell::new([b',', b';'].map(|delimiter| ReaderBuilder::new().delimiter(delimiter).build())));
    READERS.with_borrow_mut(|[comma, semicolon]| {
        let reader = if delimiter == b',' { comma } else { semicolon };
        reader.reset();
        let (mut cells, mut ends) = (vec![0; text.len() + 1], vec![0; text.len() + 2]);
        let (mut rest, mut rows) = (text, Vec::new());
        let (mut length, mut count) = (0, 0);
        loop {
            let (read, taken, written, ended) = reader.read_record(rest, &mut cells[length..], &mut ends[count..]);
            rest = &rest[taken..];
            (length, count) = (length + written, count + ended);
            match read {
                ReadRecordResult::Record => {
                    let begins = [0].into_iter().chain(ends.iter().copied());
                    rows.push(begins.zip(&ends[..count]).map(|(begin, end)| cells[begin..*end].to_vec()).collect());
                    (length, count) = (0, 0);
                }
                ReadRecordResult::End => return rows,
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    panic!("there is room for everything")
                }
            }
        }
    })
}

fn rows(text: &[u8], delimiter: u8, piece: usize) -> Rows {
    let mut csv = StrictCsv::new(BufReader::with_capacity(piece.max(1), text), delimiter);
    let mut rows = Vec::new();
    while let Some(row) = csv.next().expect("it is in memory") {
        let row = row.map(|cells| cells.iter().map(<[u8]>::to_vec).collect()).map_err(|broken| broken.to_string());
        rows.push((csv.row, row));
    }
    assert_eq!(csv.read, text.len() as u64, "everything was read");
    rows
}
