//! Whether a row can become a patient: its texts are rewritten as the command line says, and checked by the register's
//! rules.

use intake_domain::{Field, PatientDraft};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::arguments::Arguments;
use crate::earlier::CREATED_BEFORE;
use crate::once::OnceKeys;
use crate::phones;
use crate::rows::{Row, Texts};

/// Facts about a row besides its texts.
pub(crate) struct RowTag {
    /// Its number.
    pub(crate) row: u64,
    /// Number of bytes of the file that are read with it.
    pub(crate) end: u64,
    /// Its idempotency key; empty where the row cannot be read, and in a check.
    pub(crate) key: String,
    pub(crate) is_repeated: bool,
    pub(crate) is_phone_rewritten: bool,
}

/// The row as it is to be sent, or everything that is wrong with it.
pub(crate) fn check(arguments: &Arguments, row: Row, keys: &mut OnceKeys) -> (RowTag, Result<String, String>) {
    let Row { number: row, end, texts } = row;
    let mut tag = RowTag { row, end, key: String::new(), is_repeated: false, is_phone_rewritten: false };
    let body = texts.and_then(|texts| {
        let once = keys.next(&texts);
        tag.is_repeated = once.is_repeated;
        tag.key = once.text;
        body(arguments, texts, &mut tag)
    });
    (tag, body)
}

impl RowTag {
    /// Returns what the report says of a row that was created.
    pub(crate) fn notes(&self, is_replayed: bool) -> String {
        let notes = [
            (is_replayed, CREATED_BEFORE),
            (self.is_repeated, "the same as an earlier row in every field"),
            (self.is_phone_rewritten, "phone number rewritten as E.164"),
        ];
        let notes: Vec<_> = notes.into_iter().filter_map(|(is_so, note)| is_so.then_some(note)).collect();
        notes.join("; ")
    }
}

fn body(arguments: &Arguments, mut texts: Texts, tag: &mut RowTag) -> Result<String, String> {
    let rewritten_date = texts[Field::DateOfBirth].as_deref().map(|date| arguments.date_format.rewrite(date));
    let is_date_unreadable = rewritten_date == Some(None);
    if let Some(Some(date)) = rewritten_date {
        texts[Field::DateOfBirth] = Some(date);
    }
    if let (true, Some(phone)) = (arguments.australian_phones, &texts[Field::PhoneNumber]) {
        // What cannot be rewritten is refused by the register's own rule.
        if let Some(rewritten) = phones::rewrite(phone).filter(|rewritten| rewritten != phone) {
            tag.is_phone_rewritten = true;
            texts[Field::PhoneNumber] = Some(rewritten);
        }
    }
    let sent = || Field::ALL.iter().copied().filter_map(|field| Some((field, texts[field].as_deref()?)));
    let unreadable_date = || format!("dateOfBirth is not written as {}", arguments.date_format.as_str());
    match sent().collect::<PatientDraft>().validate(now()) {
        Ok(_) if is_date_unreadable => Err(unreadable_date()),
        Ok(_) => {
            let members = sent().map(|(field, text)| (field.name().to_owned(), Value::from(text)));
            Ok(Value::Object(members.collect::<Map<_, _>>()).to_string())
        }
        Err(faults) => {
            let faults = faults.into_iter().map(|fault| match fault.field {
                Some(Field::DateOfBirth) if is_date_unreadable => unreadable_date(),
                _ => fault.to_string(),
            });
            Err(faults.collect::<Vec<_>>().join("; "))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a program reads the clock; the register's own decides")]
fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}
