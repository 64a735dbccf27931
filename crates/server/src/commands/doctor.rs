//! `intake doctor`: looks at each part that the service needs, and says of each in one line whether it is in order.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use intake_domain::{Environment, timestamp};
use intake_edge as edge;
use intake_infra::environment::assert_environment;
use intake_infra::grants::assert_granted;
use intake_infra::guarantees::assert_guaranteed;
use intake_infra::means_to_read::means_to_read;
use intake_infra::migrations::assert_migrated;
use intake_infra::nodes::{silent_publications, unreached};
use intake_infra::origin::assert_origin;
use intake_infra::owner::assert_primary;
use intake_infra::pooler::assert_own_sessions;
use intake_infra::production::{assert_durable, database_time};
use intake_infra::{CheckConnection, SchemaError, Trial, try_to_store};
use serde_json::json;
use time::OffsetDateTime;

use super::knock::knock;
use super::output::print_result;
use super::probe::fetch;
use crate::backend::{Backend, explain, exposed};
use crate::settings::arguments::Output;
use crate::settings::certificate_files::read;
use crate::settings::configuration::Configuration;
use crate::settings::unknown_variables;

/// The service warns of a larger difference, too.
const SKEW_MAX: time::Duration = time::Duration::seconds(2);
/// A certificate that is not renewed by then was forgotten.
const CERTIFICATE_LEFT_MIN: time::Duration = time::Duration::days(14);
/// A day, and time for a backup that takes longer than the last.
const BACKUP_AGE_MAX: time::Duration = time::Duration::hours(26);
/// Several runs of the timer.
const AUDIT_COPY_AGE_MAX: time::Duration = time::Duration::hours(1);
const UNAUTHORISED: u16 = 401;
/// Enough for an hour of a busy service, its log included.
const FREE_MIN: u64 = 1 << 30;

/// State of a part without a fault.
enum Finding {
    InOrder(String),
    /// It cannot be seen from here; the text says why.
    NotChecked(String),
}

use Finding::{InOrder, NotChecked};

pub(crate) fn run(output: &Output, configuration: &Configuration) -> anyhow::Result<()> {
    let backend = Backend::reach(configuration);
    let with_backend = |look: &dyn Fn(&Backend) -> anyhow::Result<Finding>| match &backend {
        Ok(backend) => look(backend),
        Err(error) => bail!("{error:#}"),
    };
    let parts = [
        ("settings", settings(configuration).map(InOrder)),
        ("service", running_service(configuration)),
        ("database", with_backend(&|backend| database(backend, configuration).map(InOrder))),
        ("grants", with_backend(&|backend| grants(backend, configuration).map(InOrder))),
        ("storing", with_backend(&|backend| storing(backend, configuration))),
        ("clock", with_backend(&|backend| database_clock(backend).map(InOrder))),
        ("certificate", certificate(configuration)),
        ("address", public_address(configuration)),
        ("proxies", proxies(configuration).map(InOrder)),
        ("mail", mail(configuration).map(InOrder)),
        ("sign-on", single_sign_on(configuration).map(InOrder)),
        ("disk", disk(configuration)),
        ("backup", backup(configuration)),
        ("audit copy", audit_copy(configuration)),
    ];
    let found = parts.iter().map(|(part, found)| match found {
        Ok(InOrder(message)) => (part, "ok", Some(true), message.clone()),
        Ok(NotChecked(message)) => (part, "-", None, format!("not checked: {message}")),
        Err(error) => (part, "WRONG", Some(false), format!("{error:#}")),
    });
    let found: Vec<_> = found.collect();
    let lines: Vec<_> = found.iter().map(|(part, word, _, said)| format!("{part:<12} {word:<5}  {said}")).collect();
    let values = found
        .iter()
        .map(|(part, _, is_in_order, message)| json!({ "part": part, "isInOrder": is_in_order, "message": message }));
    print_result(output, &values.collect(), &lines.join("\n"))?;
    let wrong: Vec<_> = parts.iter().filter(|(_, found)| found.is_err()).map(|(part, _)| *part).collect();
    ensure!(wrong.is_empty(), "checks failed: {}", wrong.join(", "));
    Ok(())
}

fn settings(configuration: &Configuration) -> anyhow::Result<String> {
    configuration.assert_can_serve()?;
    let unknown = unknown_variables(std::env::vars_os().map(|(name, _)| name));
    ensure!(unknown.is_empty(), "no settings of this program, perhaps misspelt: {}", unknown.join(", "));
    let warnings = configuration.warnings();
    ensure!(warnings.is_empty(), "{}", warnings.join("; "));
    Ok(format!("{}", configuration.environment))
}

/// Asks the service beside this command, on which operators rely while no alert arrives.
fn running_service(configuration: &Configuration) -> anyhow::Result<Finding> {
    let admin = configuration.admin_addr;
    if admin.port() == 0 {
        return Ok(NotChecked("INTAKE_ADMIN_ADDR leaves the port to the service".to_owned()));
    }
    match fetch(admin, "/readyz") {
        Ok(_) => Ok(InOrder("it is ready to store patients".to_owned())),
        Err(error) if error.downcast_ref().map(std::io::Error::kind) == Some(ErrorKind::ConnectionRefused) => {
            let said = format!("no service runs at {admin}: ask where it runs, with its settings");
            ensure!(configuration.environment != Environment::Production, "{said}, once it was started");
            Ok(NotChecked(said))
        }
        Err(error) => Err(error),
    }
}

fn storing(backend: &Backend, configuration: &Configuration) -> anyhow::Result<Finding> {
    let about = explain(backend.service_setting);
    let over = &mut CheckConnection::open(&backend.service).map_err(&about)?;
    // Before, there is no table.
    assert_migrated(over).map_err(&about)?;
    match try_to_store(over, &backend.service, configuration.deadline) {
        Ok(Trial::Passed) => Ok(InOrder("patients were stored, and rolled back".to_owned())),
        Ok(Trial::Spread) => Ok(NotChecked("the database is a cluster".to_owned())),
        Err(SchemaError::Failed(reason)) => bail!("no patient can be stored: {reason}"),
        Err(error) => Err(about(error)),
    }
}

fn database(backend: &Backend, configuration: &Configuration) -> anyhow::Result<String> {
    let (url, environment) = (&backend.service, configuration.environment);
    let about = explain(backend.service_setting);
    let over = if backend.embedded.is_none() { assert_own_sessions(url) } else { CheckConnection::open(url) };
    let over = &mut over.map_err(&about)?;
    assert_primary(over).map_err(&about)?;
    assert_environment(over, environment).map_err(&about)?;
    assert_migrated(over).map_err(&about)?;
    assert_durable(url).map_err(&about)?;
    assert_guaranteed(over).map_err(&about)?;
    let away = unreached(url).map_err(&about)?;
    ensure!(
        away.is_empty(),
        "nodes of the database are away, or lack the password of the service's role (docs/scale.md): {}",
        away.join("; ")
    );
    let silent = silent_publications(url).map_err(&about)?;
    ensure!(
        silent.is_empty(),
        "subscribers get no change from a publication ({}): set citus.enable_change_data_capture = on for the database on every \
         node, then create the subscriptions again (docs/reading.md)",
        silent.join(", ")
    );
    if environment == Environment::Production {
        assert_origin(over).map_err(&about)?;
    }
    Ok(if backend.embedded.is_some() { "embedded, migrated" } else { "reached, migrated, durable" }.to_owned())
}

fn grants(backend: &Backend, configuration: &Configuration) -> anyhow::Result<String> {
    let about = explain(backend.service_setting);
    let over = &mut CheckConnection::open(&backend.service).map_err(&about)?;
    // The privileges are on tables, which would be missing.
    assert_migrated(over).map_err(&about)?;
    assert_granted(over).map_err(&about)?;
    match means_to_read(over).map_err(about)? {
        Some(means) if configuration.environment == Environment::Production => bail!("{}", exposed(&means)),
        _ => Ok("the role has what the service needs".to_owned()),
    }
}

fn database_clock(backend: &Backend) -> anyhow::Result<String> {
    let about = explain(backend.service_setting);
    let over = &mut CheckConnection::open(&backend.service).map_err(&about)?;
    let before = edge::machine_time();
    let there = database_time(over).map_err(&about)?;
    let after = edge::machine_time();
    // The database's moment lies somewhere between the two.
    let skew = if there < before { before - there } else { there - after };
    ensure!(
        skew <= SKEW_MAX,
        "this machine's clock and the database's differ by {} s: synchronise both by NTP",
        skew.whole_seconds()
    );
    Ok("agrees with the database's".to_owned())
}

fn certificate(configuration: &Configuration) -> anyhow::Result<Finding> {
    let Some(files) = &configuration.tls_files else {
        return match configuration.environment {
            Environment::Development => Ok(InOrder("made by the service for localhost".to_owned())),
            Environment::Production if configuration.trusted_proxies.is_empty() => {
                bail!(
                    "there is none, and no proxy is trusted: set INTAKE_TLS_CERT and INTAKE_TLS_KEY, or INTAKE_TRUSTED_PROXIES"
                )
            }
            Environment::Production => {
                Ok(NotChecked("trusted proxies have it; `address` is what they show".to_owned()))
            }
        };
    };
    let ends_at = read(files, edge::now())?.ends_at;
    assert_lasts(ends_at).context("INTAKE_TLS_CERT")?;
    Ok(InOrder(format!("good until {}", timestamp(ends_at))))
}

fn assert_lasts(ends_at: OffsetDateTime) -> anyhow::Result<()> {
    let is_far = ends_at - edge::now() > CERTIFICATE_LEFT_MIN;
    ensure!(is_far, "the certificate ends at {}: renew it", timestamp(ends_at));
    Ok(())
}

/// Sends a create without a key to where clients do.
fn public_address(configuration: &Configuration) -> anyhow::Result<Finding> {
    let Some(url) = &configuration.public_url else {
        return Ok(NotChecked("INTAKE_PUBLIC_URL is not set".to_owned()));
    };
    let shown = knock(url).with_context(|| format!("INTAKE_PUBLIC_URL: {url}"))?;
    assert_lasts(shown.ends_at).with_context(|| format!("INTAKE_PUBLIC_URL: {url}"))?;
    ensure!(
        shown.status == UNAUTHORISED,
        "INTAKE_PUBLIC_URL: {url} answers a create without a key with {} instead of {UNAUTHORISED}: is it this service?",
        shown.status
    );
    Ok(InOrder(format!("{url} answers; its certificate is good until {}", timestamp(shown.ends_at))))
}

fn proxies(configuration: &Configuration) -> anyhow::Result<String> {
    let proxies = &configuration.trusted_proxies;
    if proxies.is_empty() {
        return Ok("none are trusted: plain HTTP is refused".to_owned());
    }
    ensure!(
        !proxies.trust_everyone(),
        "INTAKE_TRUSTED_PROXIES holds every address, so that anyone can send a key in clear and claim another address"
    );
    ensure!(configuration.http_addr.is_some(), "INTAKE_TRUSTED_PROXIES is set, but INTAKE_HTTP_ADDR is off");
    Ok("trusted on the plain listener".to_owned())
}

fn mail(configuration: &Configuration) -> anyhow::Result<String> {
    let Some(settings) = &configuration.mail else { return Ok("off: links are shown instead".to_owned()) };
    let waiting = mails_waiting(configuration).map(|count| format!("; emails that wait: {count}")).unwrap_or_default();
    settings.server.greet().with_context(|| format!("INTAKE_SMTP_URL{waiting}"))?;
    Ok(format!("the server answers{waiting}"))
}

/// The mails that wait in the service beside this command. None: no service answers.
fn mails_waiting(configuration: &Configuration) -> Option<String> {
    let metrics = fetch(configuration.admin_addr, "/metrics").ok()?;
    metrics.lines().find_map(|line| line.strip_prefix("intake_mails_waiting ")).map(str::to_owned)
}

fn single_sign_on(configuration: &Configuration) -> anyhow::Result<String> {
    let Some(settings) = &configuration.single_sign_on else { return Ok("off: members sign in here".to_owned()) };
    let base = configuration.base_url(Some(configuration.https_addr.port()));
    let greeted = settings.provider(&base)?.greet();
    if settings.passwords.are_on() {
        greeted.context("INTAKE_OIDC_ISSUER")?;
        return Ok("the provider answers".to_owned());
    }
    greeted.context("INTAKE_OIDC_ISSUER: nobody can sign in, unless INTAKE_PASSWORDS is on again")?;
    Ok("the provider answers; passwords are off".to_owned())
}

fn disk(configuration: &Configuration) -> anyhow::Result<Finding> {
    let is_embedded = configuration.database.is_none();
    let folder = if is_embedded { configuration.data_dir.postgres() } else { PathBuf::from("/var/log") };
    // What is not made yet will be made in the nearest folder that is there.
    let folder = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let found = rustix::fs::statvfs(folder).with_context(|| folder.display().to_string())?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let said = format!("{} MiB free in {}", free >> 20, folder.display());
    ensure!(free >= FREE_MIN, "{said}: the service needs room");
    Ok(if is_embedded { InOrder(said) } else { NotChecked(format!("the database's disk; {said}")) })
}

fn backup(configuration: &Configuration) -> anyhow::Result<Finding> {
    match &configuration.backup_mark {
        None => Ok(NotChecked("INTAKE_BACKUP_MARK is not set".to_owned())),
        Some(mark) => newest("backup", mark, BACKUP_AGE_MAX, "make one").context("INTAKE_BACKUP_MARK"),
    }
}

fn audit_copy(configuration: &Configuration) -> anyhow::Result<Finding> {
    let Some(folder) = &configuration.audit_copies else {
        return Ok(NotChecked("INTAKE_AUDIT_COPIES is not set".to_owned()));
    };
    let look = "look at `systemctl status intake-audit-copy.timer intake-audit-copy`";
    newest("copy", &folder.join("copied"), AUDIT_COPY_AGE_MAX, look).context("INTAKE_AUDIT_COPIES")
}

/// Judges a file that is touched at the end of each backup, or each copy.
fn newest(kind: &str, mark: &Path, age_max: time::Duration, advice: &str) -> anyhow::Result<Finding> {
    let changed = std::fs::metadata(mark).and_then(|found| found.modified());
    let name = || format!("{}, which each {kind} touches at its end", mark.display());
    let ended_at = OffsetDateTime::from(changed.with_context(name)?);
    let is_recent = edge::machine_time() - ended_at < age_max;
    ensure!(is_recent, "the newest {kind} ended at {}: {advice}", timestamp(ended_at));
    Ok(InOrder(format!("the newest ended at {}", timestamp(ended_at))))
}
