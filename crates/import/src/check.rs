//! Whether a row can become a patient: its texts are rewritten as the command line says, and checked by the register's
//! rules.

use intake_domain::conversions::DateForm;
use intake_domain::{FaultKind, Field, FieldFault, FieldFaults, NewPatient, PatientDraft};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::arguments::Arguments;
use crate::convert::{Change, How, Texts, convert};
use crate::date_forms::day;
use crate::earlier::CREATED_BEFORE;
use crate::once::OnceKeys;
use crate::phones::unclear;
use crate::rows::Row;
use crate::secret::Secret;
use crate::suspicions::{Suspicion, Suspicions};

/// Facts about a row besides its texts.
#[derive(Default)]
pub(crate) struct RowTag {
    /// Its number.
    pub(crate) row: u64,
    /// Number of bytes of the file that are read with it.
    pub(crate) end: u64,
    /// Its idempotency key; empty where the row cannot be read, and in a check.
    pub(crate) key: String,
    pub(crate) is_repeated: bool,
    /// Values that the options changed.
    pub(crate) changes: Vec<Change>,
    /// Values that are probably wrong.
    pub(crate) suspicions: Vec<Suspicion>,
}

/// Checks the rows of a file, one after the other.
pub(crate) struct Checker<'a> {
    arguments: &'a Arguments,
    keys: OnceKeys,
    suspicions: Suspicions,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(arguments: &'a Arguments, secret: Option<&Secret>) -> anyhow::Result<Self> {
        Ok(Self { arguments, keys: OnceKeys::of(secret, &arguments.run)?, suspicions: Suspicions::default() })
    }

    /// The row's texts as they are to be sent, or everything that is wrong with it.
    pub(crate) fn check(&mut self, row: Row) -> (RowTag, Result<Texts, Vec<String>>) {
        let Row { number: row, end, content } = row;
        let mut tag = RowTag { row, end, ..RowTag::default() };
        let texts = content.map_err(|fault| vec![fault]).and_then(|(mut texts, changes)| {
            // Made from the file's own texts, so that other options create no row again.
            let once = self.keys.next(&texts);
            tag.is_repeated = once.is_repeated;
            tag.key = once.text;
            tag.changes = changes;
            tag.changes.extend(convert(self.arguments, &mut texts));
            let now = now();
            let patient = self.validated(&mut texts, now, &mut tag.changes)?;
            tag.suspicions = self.suspicions.look(&patient, now);
            Ok(texts)
        });
        (tag, texts)
    }

    fn validated(
        &self,
        texts: &mut Texts,
        now: OffsetDateTime,
        changes: &mut Vec<Change>,
    ) -> Result<NewPatient, Vec<String>> {
        patient(texts, now).or_else(|faults| {
            let droppable = |fault: &FieldFault| fault.field.filter(|it| self.arguments.drop_invalid.contains(it));
            for fault in faults {
                if let Some(field) = droppable(&fault) {
                    texts[field] = None;
                    changes.push(Change { field, how: How::Dropped(fault) });
                }
            }
            patient(texts, now).map_err(|faults| faults.into_iter().map(|fault| self.say(&fault, texts)).collect())
        })
    }

    fn say(&self, fault: &FieldFault, texts: &Texts) -> String {
        let forms: Vec<_> = self.arguments.date_format.iter().map(DateForm::as_str).collect();
        match fault.field {
            Some(Field::DateOfBirth) if fault.kind == FaultKind::NotADate && !forms.is_empty() => {
                let text = texts[Field::DateOfBirth].as_deref().unwrap_or_default();
                let fits = self.arguments.date_format.iter().filter(|form| day(text, form).is_some());
                match fits.map(DateForm::as_str).collect::<Vec<_>>().as_slice() {
                    fits @ [_, _, ..] => {
                        let forms = fits.join(" and as ");
                        format!("dateOfBirth is another day as {forms}: give only the format that is meant")
                    }
                    _ => format!("dateOfBirth is not written as {}", forms.join(" or ")),
                }
            }
            Some(Field::PhoneNumber) if fault.kind == FaultKind::NotE164 && self.arguments.australian_phones => {
                format!("{fault}; this one {}", unclear(texts[Field::PhoneNumber].as_deref().unwrap_or_default()))
            }
            _ => fault.to_string(),
        }
    }
}

/// The patient as JSON.
pub(crate) fn body(texts: &Texts) -> String {
    let members = present(texts).map(|(field, text)| (field.name().to_owned(), Value::from(text)));
    Value::Object(members.collect::<Map<_, _>>()).to_string()
}

impl RowTag {
    /// The values that were left out, and why.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| matches!(change.how, How::Dropped(_)))
    }

    /// Returns what the report says of a row that is not refused.
    pub(crate) fn notes(&self, is_replayed: bool) -> String {
        let notes = [(is_replayed, CREATED_BEFORE), (self.is_repeated, "the same as an earlier row in every field")];
        let notes = notes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note.to_owned());
        let changes = self.changes.iter().map(ToString::to_string);
        let suspicions = self.suspicions.iter().map(|suspicion| format!("look at it: {suspicion}"));
        let notes: Vec<_> = notes.chain(changes).chain(suspicions).collect();
        notes.join("; ")
    }
}

fn patient(texts: &Texts, now: OffsetDateTime) -> Result<NewPatient, FieldFaults> {
    present(texts).collect::<PatientDraft>().validate(now)
}

fn present(texts: &Texts) -> impl Iterator<Item = (Field, &str)> {
    Field::ALL.iter().copied().filter_map(|field| Some((field, texts[field].as_deref()?)))
}

#[expect(clippy::disallowed_methods, reason = "a program reads the clock; the register's own decides")]
pub(crate) fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}
