//! Writes spreadsheets, as XML in an archive.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use time::Date;
use time::macros::date;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A cell of a spreadsheet.
#[derive(Clone)]
pub(crate) enum Cell {
    Text(String),
    Number(f64),
    /// A number that is shown with ten digits.
    TenDigits(f64),
    Day(Date),
    /// A formula that no program has calculated.
    Formula,
    Error,
}

pub(crate) fn texts(cells: &[&str]) -> Vec<Cell> {
    cells.iter().map(|cell| Cell::Text((*cell).to_owned())).collect()
}

/// Writes a workbook of Excel with these sheets. `merged` are ranges of the first sheet.
pub(crate) fn write_xlsx(path: &Path, sheets: &[(&str, Vec<Vec<Cell>>)], merged: &[&str]) {
    write_workbook(path, "", sheets, merged);
}

/// Writes a workbook with these properties.
pub(crate) fn write_workbook(path: &Path, properties: &str, sheets: &[(&str, Vec<Vec<Cell>>)], merged: &[&str]) {
    let main = "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" \
                xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\"";
    let relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let mut parts = vec![
        (
            "[Content_Types].xml".to_owned(),
            "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\"/>".to_owned(),
        ),
        (
            "xl/styles.xml".to_owned(),
            format!(
                "<styleSheet {main}><numFmts count=\"2\"><numFmt numFmtId=\"170\" formatCode=\"d/mm/yyyy\"/>\
                 <numFmt numFmtId=\"171\" formatCode=\"0000\\ 000\\ 000\"/></numFmts><cellXfs count=\"3\"><xf numFmtId=\"0\"/>\
                 <xf numFmtId=\"170\"/><xf numFmtId=\"171\"/></cellXfs></styleSheet>"
            ),
        ),
    ];
    let (mut listed, mut related) = (String::new(), String::new());
    for ((name, rows), number) in sheets.iter().zip(1..) {
        listed.push_str(&format!("<sheet name=\"{}\" sheetId=\"{number}\" r:id=\"r{number}\"/>", escaped(name)));
        related.push_str(&format!(
            "<Relationship Id=\"r{number}\" Type=\"{relations}/worksheet\" Target=\"worksheets/sheet{number}.xml\"/>"
        ));
        let mut xml = format!("<worksheet {main}><sheetData>");
        for (cells, row) in rows.iter().zip(1..) {
            xml.push_str(&format!("<row r=\"{row}\">"));
            for (cell, column) in cells.iter().zip('A'..) {
                xml.push_str(&excel_cell(cell, &format!("{column}{row}")));
            }
            xml.push_str("</row>");
        }
        xml.push_str("</sheetData>");
        if number == 1 && !merged.is_empty() {
            let ranges: String = merged.iter().map(|range| format!("<mergeCell ref=\"{range}\"/>")).collect();
            xml.push_str(&format!("<mergeCells>{ranges}</mergeCells>"));
        }
        parts.push((format!("xl/worksheets/sheet{number}.xml"), xml + "</worksheet>"));
    }
    let package = "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">";
    parts.push((
        "xl/workbook.xml".to_owned(),
        format!("<workbook {main}>{properties}<sheets>{listed}</sheets></workbook>"),
    ));
    parts.push(("xl/_rels/workbook.xml.rels".to_owned(), format!("{package}{related}</Relationships>")));
    parts.push((
        "_rels/.rels".to_owned(),
        format!("{package}<Relationship Id=\"r1\" Type=\"{relations}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"),
    ));
    write(path, &parts);
}

/// Writes an `.ods` file with these sheets.
pub(crate) fn write_ods(path: &Path, sheets: &[(&str, Vec<Vec<Cell>>)]) {
    let names = ["office", "table", "text"]
        .map(|name| format!("xmlns:{name}=\"urn:oasis:names:tc:opendocument:xmlns:{name}:1.0\""));
    let mut xml = format!("<office:document-content {}><office:body><office:spreadsheet>", names.join(" "));
    for (name, rows) in sheets {
        xml.push_str(&format!("<table:table table:name=\"{}\">", escaped(name)));
        for cells in rows {
            let cells: String = cells.iter().map(open_cell).collect();
            xml.push_str(&format!("<table:table-row>{cells}</table:table-row>"));
        }
        xml.push_str("</table:table>");
    }
    xml.push_str("</office:spreadsheet></office:body></office:document-content>");
    let manifest = "<manifest:manifest xmlns:manifest=\"urn:oasis:names:tc:opendocument:xmlns:manifest:1.0\"/>";
    let mimetype = "application/vnd.oasis.opendocument.spreadsheet";
    let parts = [("mimetype", mimetype), ("META-INF/manifest.xml", manifest), ("content.xml", &xml)];
    write(path, &parts.map(|(name, text)| (name.to_owned(), text.to_owned())));
}

fn excel_cell(cell: &Cell, place: &str) -> String {
    match cell {
        Cell::Text(text) if text.is_empty() => String::new(),
        Cell::Text(text) => {
            let text = escaped(text);
            format!("<c r=\"{place}\" t=\"inlineStr\"><is><t xml:space=\"preserve\">{text}</t></is></c>")
        }
        Cell::Number(number) => format!("<c r=\"{place}\"><v>{number}</v></c>"),
        Cell::TenDigits(number) => format!("<c r=\"{place}\" s=\"2\"><v>{number}</v></c>"),
        Cell::Day(day) => {
            format!("<c r=\"{place}\" s=\"1\"><v>{}</v></c>", (*day - date!(1899 - 12 - 30)).whole_days())
        }
        Cell::Formula => format!("<c r=\"{place}\"><f>A1</f></c>"),
        Cell::Error => format!("<c r=\"{place}\" t=\"e\"><v>#N/A</v></c>"),
    }
}

fn open_cell(cell: &Cell) -> String {
    let typed = |kind: &str, value: String| format!("<table:table-cell office:value-type=\"{kind}\" {value}/>");
    match cell {
        Cell::Text(text) if text.is_empty() => "<table:table-cell/>".to_owned(),
        Cell::Text(text) => {
            let lines: String = text.lines().map(|line| format!("<text:p>{}</text:p>", escaped(line))).collect();
            format!("<table:table-cell office:value-type=\"string\">{lines}</table:table-cell>")
        }
        Cell::Number(number) | Cell::TenDigits(number) => typed("float", format!("office:value=\"{number}\"")),
        Cell::Day(day) => typed("date", format!("office:date-value=\"{day}\"")),
        Cell::Formula => "<table:table-cell table:formula=\"of:=[.A1]\"/>".to_owned(),
        Cell::Error => {
            "<table:table-cell office:value-type=\"string\"><text:p>#N/A</text:p></table:table-cell>".to_owned()
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

fn write(path: &Path, parts: &[(String, String)]) {
    let mut archive = ZipWriter::new(File::create(path).unwrap());
    for (name, text) in parts {
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap();
}
