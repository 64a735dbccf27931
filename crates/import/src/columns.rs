//! Which field of a patient each column of a CSV file holds.

use anyhow::{Context, bail};
use intake_domain::{Field, UnknownField};

use crate::arguments::Mapping;
use crate::strict_csv::{Broken, Cells, Fault};

/// Columns that the service adds to a patient and `intake export` writes beside the fields. No column of that name is
/// imported.
pub(crate) const OF_THE_REGISTER: [&str; 5] = ["id", "organisationId", "isIdentified", "createdAt", "updatedAt"];

/// Other characters that may stand between cells: the character, how it is written for `--delimiter`, and its
/// name.
pub(crate) const OTHER_DELIMITERS: [(char, &str, &str); 4] =
    [(';', ";", "semicolons"), ('\t', "\\t", "tabs"), ('|', "|", "vertical bars"), (',', ",", "commas")];

/// The columns of a file.
#[derive(Debug)]
pub(crate) struct Columns {
    fields: Vec<Option<Field>>,
    /// True if `intake export` has written the file, which marks texts that a spreadsheet would take for formulas.
    pub(crate) are_exported: bool,
}

impl Columns {
    /// Reads the header. A column that is no field is a fault, so that nothing is left out by mistake; all faults are
    /// reported.
    pub(crate) fn read(header: Result<&Cells, Broken>, mappings: &[Mapping]) -> anyhow::Result<Self> {
        let header = match header {
            Ok(cells) => header_texts(cells)?,
            Err(broken) => {
                bail!("the header cannot be read: {}", delimiter_hint(&broken).unwrap_or(broken.to_string()))
            }
        };
        if let [only] = header.as_slice()
            && let Some(hint) =
                OTHER_DELIMITERS.iter().find(|(character, ..)| only.contains(*character)).map(say_delimiter)
        {
            bail!("the header has one cell: {hint}");
        }
        if let Some(unused) = mappings.iter().find(|mapping| !header.contains(&mapping.header.as_str())) {
            bail!("--map: there is no column {:?}", unused.header);
        }
        let (mut fields, mut faults) = (Vec::new(), Vec::new());
        for name in &header {
            let mapping = mappings.iter().find(|mapping| mapping.header == *name);
            let field = match mapping {
                Some(mapping) => mapping.field,
                None if OF_THE_REGISTER.contains(name) => None,
                None => field_named(name).map_err(|fault| faults.push(fault)).ok(),
            };
            if let Some(field) = field.filter(|field| fields.contains(&Some(*field))) {
                faults.push(format!("two columns hold {}: leave one out with --map", field.name()));
            }
            fields.push(field);
        }
        for field in Field::ALL.iter().copied().filter(|field| field.definition().is_required) {
            if !fields.contains(&Some(field)) {
                faults.push(format!(
                    "no column holds {}: name it with --map \"HEADER={}\"",
                    field.name(),
                    field.name()
                ));
            }
        }
        if !faults.is_empty() {
            bail!("{}", faults.join("; "));
        }
        let are_exported = OF_THE_REGISTER.iter().all(|name| header.contains(name)) && mappings.is_empty();
        Ok(Self { fields, are_exported })
    }

    /// Returns how many columns there are.
    pub(crate) fn count(&self) -> usize {
        self.fields.len()
    }

    /// The field of each column, in the order of the columns.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Option<Field>> + '_ {
        self.fields.iter().copied()
    }
}

fn field_named(header: &str) -> Result<Field, String> {
    header.parse::<Field>().map_err(|unknown: UnknownField| {
        let message = unknown.message();
        format!(
            "the column {header:?} {message}{} name its field with --map \"{header}=…\", or leave it out with --map \"{header}=\"",
            if message.ends_with('?') { "" } else { ":" },
        )
    })
}

fn header_texts(header: &Cells) -> anyhow::Result<Vec<&str>> {
    let texts = header.iter().map(|cell| std::str::from_utf8(cell).map(str::trim)).collect::<Result<Vec<_>, _>>();
    texts.context("the header is not UTF-8: save the file as UTF-8")
}

/// Returns what to do about a header whose first quoted cell is not followed by the delimiter but by another one.
fn delimiter_hint(broken: &Broken) -> Option<String> {
    let Fault::TextAfterQuote { text, .. } = broken.fault else { return None };
    OTHER_DELIMITERS.iter().find(|(character, ..)| *character == char::from(text)).map(say_delimiter)
}

pub(crate) fn say_delimiter((_, written, noun): &(char, &str, &str)) -> String {
    format!("if {noun} stand between the cells, say so with --delimiter '{written}'")
}
