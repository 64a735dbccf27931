//! `intake pairs`: lists patients that may be one person, by their ids. It prints no value of a patient, and changes
//! nothing in the register.

mod decisions;

use intake_domain::{
    Change, FeedError, FeedScope, FeedToken, FoldedPatient, Pair, PairSearch, PatientFeed, Selection, Span, read_span,
    search_newcomers, search_pairs,
};
use intake_infra::PostgresPatientFeed;
use serde_json::{Value, json};

use super::output::{print, print_change};
use crate::backend::Backend;
use crate::export::reading::{advise, is_patient, open_feed};
use crate::export::standard_error::say;
use crate::export::state::State;
use crate::settings::configuration::Configuration;
use crate::settings::pairs_arguments::PairsArguments;
use decisions::Decisions;

/// Number of patients whose like are searched for at a time: their clues are half a megabyte.
const NEWCOMERS_MAX: usize = 500;

pub(crate) fn run(arguments: &PairsArguments, configuration: &Configuration) -> anyhow::Result<()> {
    let decisions = arguments.decided.as_deref().map(Decisions::open).transpose()?;
    if let (Some(decisions), Some([one, other])) = (&decisions, arguments.two_persons.as_deref()) {
        decisions.add([*one, *other])?;
        let ids = [one.to_string(), other.to_string()];
        return print_change(&arguments.output, &json!({ "ids": ids }), "The two are not listed again.");
    }
    let (since, state) = State::open(arguments.state.as_deref(), None)?;
    let backend = Backend::reach(configuration)?;
    let mut feed = open_feed(&backend, is_patient)?;
    let scope = FeedScope { organisation_id: arguments.organisation, key_id: None };
    let (mut search, until) = find(&mut feed, &scope, since).map_err(|error| advise(error, &advice(arguments)))?;
    search.pairs.retain(|pair| decisions.as_ref().is_none_or(|decisions| !decisions.contain(pair.ids)));
    print_pairs(&search, since.is_some(), arguments.output.json)?;
    // At the end: what was not printed is searched again.
    until.map_or(Ok(()), |token| state.keep(token))
}

/// Returns how to begin again where the position is of another history.
fn advice(arguments: &PairsArguments) -> String {
    let remove = arguments.state.as_deref().map(|path| format!("remove {} and ", path.display()));
    format!("{}run the command again, which searches the whole register", remove.unwrap_or_default())
}

/// Finds the pairs of the patients that came since, among all. The audit log records how many were read.
fn find(
    feed: &mut PostgresPatientFeed,
    scope: &FeedScope,
    since: Option<FeedToken>,
) -> Result<(PairSearch, Option<FeedToken>), FeedError> {
    let since = feed.open(scope, since)?;
    let span = Span { since, until: feed.mark(scope, None)? };
    let selection = feed.select(scope, &span)?;
    let search = match span.since.token {
        Some(_) => search_since(feed, scope, &span, &selection)?,
        None => search_pairs(&read_all(feed, scope, &span, &selection)?),
    };
    if let (Some(token), 1..) = (span.until.token, search.patients) {
        feed.record(scope, token, u64::try_from(search.patients).unwrap_or(u64::MAX))?;
    }
    Ok((search, span.until.token))
}

/// Folds every patient of the organisation.
fn read_all(
    feed: &mut PostgresPatientFeed,
    scope: &FeedScope,
    span: &Span,
    selection: &Selection,
) -> Result<Vec<FoldedPatient>, FeedError> {
    let mut patients = Vec::new();
    read_span(feed, scope, span, selection, None, |change| {
        if let Change::Stored(patient) = change {
            patients.push(FoldedPatient::new(&patient));
        }
        Ok::<_, FeedError>(())
    })?;
    Ok(patients)
}

/// Searches for some newcomers at a time. Erased patients are not in the register, so nobody is compared with them.
fn search_since(
    feed: &mut PostgresPatientFeed,
    scope: &FeedScope,
    span: &Span,
    selection: &Selection,
) -> Result<PairSearch, FeedError> {
    let (mut search, mut after) = (PairSearch::default(), None);
    loop {
        let page = feed.patients(scope, span, selection, after)?;
        for some in page.items.chunks(NEWCOMERS_MAX) {
            let newcomers: Vec<_> = some.iter().map(FoldedPatient::new).collect();
            search.add(search_newcomers(feed, scope, &span.until, &newcomers)?);
        }
        after = page.continued_after;
        if after.is_none() {
            break;
        }
    }
    // A standby that was promoted meanwhile may lack the mark.
    feed.open(scope, span.until.token)?;
    Ok(search)
}

fn print_pairs(search: &PairSearch, is_continued: bool, is_json: bool) -> anyhow::Result<()> {
    let groups = search.skipped_groups.len();
    if groups > 0 {
        say(&format!("groups that were not compared, because too many patients share a name and more: {groups}"))?;
    }
    if is_json {
        let pairs: Vec<_> = search.pairs.iter().map(value_of).collect();
        return print(&json!({ "pairs": pairs, "skippedGroups": groups }).to_string());
    }
    if search.pairs.is_empty() {
        let nobody = "No two patients look like one person.";
        return print(if is_continued { "No patient that came since looks like another." } else { nobody });
    }
    search.pairs.iter().try_for_each(|pair| print(&line_of(pair)))
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
