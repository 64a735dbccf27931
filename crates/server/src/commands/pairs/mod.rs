//! `intake pairs`: lists patients that may be one person, by their ids. It prints no value of a patient, and changes
//! nothing in the register.

mod decisions;

use intake_domain::{Change, FeedError, FeedScope, FoldedPatient, Pair, PatientFeed, Span, read_span, search_pairs};
use intake_infra::PostgresPatientFeed;
use serde_json::{Value, json};

use super::output::{print, print_change};
use crate::backend::Backend;
use crate::export::reading::{advise, is_patient, open_feed};
use crate::export::standard_error::say;
use crate::settings::configuration::Configuration;
use crate::settings::pairs_arguments::PairsArguments;
use decisions::Decisions;

pub(crate) fn run(arguments: &PairsArguments, configuration: &Configuration) -> anyhow::Result<()> {
    let decisions = arguments.decided.as_deref().map(Decisions::open).transpose()?;
    if let (Some(decisions), Some([one, other])) = (&decisions, arguments.two_persons.as_deref()) {
        decisions.add([*one, *other])?;
        let ids = [one.to_string(), other.to_string()];
        return print_change(&arguments.output, &json!({ "ids": ids }), "The two are not listed again.");
    }
    let backend = Backend::reach(configuration)?;
    let mut feed = open_feed(&backend, is_patient)?;
    let scope = FeedScope { organisation_id: arguments.organisation, key_id: None };
    let patients = read_all(&mut feed, &scope).map_err(|error| advise(error, "run the command again"))?;
    let mut search = search_pairs(&patients);
    search.pairs.retain(|pair| decisions.as_ref().is_none_or(|decisions| !decisions.contain(pair.ids)));
    if search.skipped_groups > 0 {
        let groups = search.skipped_groups;
        say(&format!("groups that were not compared, because too many patients share a name and more: {groups}"))?;
    }
    if arguments.output.json {
        let pairs: Vec<_> = search.pairs.iter().map(value_of).collect();
        return print(&json!({ "pairs": pairs, "skippedGroups": search.skipped_groups }).to_string());
    }
    if search.pairs.is_empty() {
        return print("No two patients look like one person.");
    }
    search.pairs.iter().try_for_each(|pair| print(&line_of(pair)))
}

/// Folds every patient of the organisation. The audit log records that they were read.
fn read_all(feed: &mut PostgresPatientFeed, scope: &FeedScope) -> Result<Vec<FoldedPatient>, FeedError> {
    let since = feed.open(scope, None)?;
    let span = Span { since, until: feed.mark(scope, None)? };
    let selection = feed.select(scope, &span)?;
    if let (Some(token), 1..) = (span.until.token, selection.count()) {
        feed.record(scope, token, selection.count())?;
    }
    let mut patients = Vec::new();
    read_span(feed, scope, &span, &selection, None, |change| {
        if let Change::Stored(patient) = change {
            patients.push(FoldedPatient::new(&patient));
        }
        Ok::<_, FeedError>(())
    })?;
    Ok(patients)
}

fn value_of(pair: &Pair) -> Value {
    let reasons: Vec<_> = pair.reasons.iter().map(ToString::to_string).collect();
    json!({ "ids": pair.ids.map(|id| id.to_string()), "rank": pair.rank.to_string(), "reasons": reasons })
}

fn line_of(pair: &Pair) -> String {
    let reasons: Vec<_> = pair.reasons.iter().map(ToString::to_string).collect();
    let [one, other] = pair.ids;
    format!("{:<4}  {one}  {other}  {}", pair.rank.to_string(), reasons.join(" "))
}
