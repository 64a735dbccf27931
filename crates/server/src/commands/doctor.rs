//! `intake doctor`: looks at each part that the service needs, and says of each in one line whether it is in order.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use intake_domain::{Environment, timestamp};
use intake_edge as edge;
use intake_infra::CheckConnection;
use intake_infra::environment::assert_environment;
use intake_infra::grants::assert_granted;
use intake_infra::means_to_read::means_to_read;
use intake_infra::migrations::assert_migrated;
use intake_infra::nodes::{silent_publications, unreached};
use intake_infra::origin::assert_origin;
use intake_infra::owner::assert_primary;
use intake_infra::pooler::assert_own_sessions;
use intake_infra::production::{assert_durable, database_time};
use serde_json::json;

use super::output::print_result;
use crate::backend::{Backend, explain, exposed};
use crate::settings::arguments::Output;
use crate::settings::certificate_files::read;
use crate::settings::configuration::Configuration;
use crate::settings::unknown_variables;

/// The service warns of a larger difference, too.
const SKEW_MAX: time::Duration = time::Duration::seconds(2);
/// A certificate that is not renewed by then was forgotten.
const CERTIFICATE_LEFT_MIN: time::Duration = time::Duration::days(14);
/// Enough for an hour of a busy service, its log included.
const FREE_MIN: u64 = 1 << 30;

pub(crate) fn run(output: &Output, configuration: &Configuration) -> anyhow::Result<()> {
    let backend = Backend::reach(configuration);
    let with_backend = |look: &dyn Fn(&Backend) -> anyhow::Result<String>| match &backend {
        Ok(backend) => look(backend),
        Err(error) => bail!("{error:#}"),
    };
    let parts = [
        ("settings", settings(configuration)),
        ("database", with_backend(&|backend| database(backend, configuration))),
        ("grants", with_backend(&|backend| grants(backend, configuration))),
        ("clock", with_backend(&database_clock)),
        ("certificate", certificate(configuration)),
        ("proxies", proxies(configuration)),
        ("mail", mail(configuration)),
        ("sign-on", single_sign_on(configuration)),
        ("disk", disk(configuration)),
    ];
    let lines = parts.iter().map(|(part, found)| match found {
        Ok(found) => format!("{part:<12} ok     {found}"),
        Err(error) => format!("{part:<12} WRONG  {error:#}"),
    });
    let lines: Vec<_> = lines.collect();
    let values = parts.iter().map(|(part, found)| {
        let message = found.as_ref().map_or_else(|error| format!("{error:#}"), Clone::clone);
        json!({ "part": part, "isInOrder": found.is_ok(), "message": message })
    });
    print_result(output, &values.collect(), &lines.join("\n"))?;
    let wrong: Vec<_> = parts.iter().filter(|(_, found)| found.is_err()).map(|(part, _)| *part).collect();
    ensure!(wrong.is_empty(), "not in order: {}", wrong.join(", "));
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

fn database(backend: &Backend, configuration: &Configuration) -> anyhow::Result<String> {
    let (url, environment) = (&backend.service, configuration.environment);
    let about = explain(backend.service_setting);
    let over = if backend.embedded.is_none() { assert_own_sessions(url) } else { CheckConnection::open(url) };
    let over = &mut over.map_err(&about)?;
    assert_primary(over).map_err(&about)?;
    assert_environment(over, environment).map_err(&about)?;
    assert_migrated(over).map_err(&about)?;
    assert_durable(url).map_err(&about)?;
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
         node, then make the subscriptions anew (docs/reading.md)",
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
        "this machine's clock and the database's differ by {} s: set both by NTP",
        skew.whole_seconds()
    );
    Ok("agrees with the database's".to_owned())
}

fn certificate(configuration: &Configuration) -> anyhow::Result<String> {
    let Some(files) = &configuration.tls_files else {
        return match configuration.environment {
            Environment::Development => Ok("made by the service for localhost".to_owned()),
            Environment::Production if configuration.trusted_proxies.is_empty() => {
                bail!(
                    "there is none, and no proxy is trusted: set INTAKE_TLS_CERT and INTAKE_TLS_KEY, or INTAKE_TRUSTED_PROXIES"
                )
            }
            Environment::Production => Ok("none: trusted proxies have it".to_owned()),
        };
    };
    let now = edge::now();
    let ends_at = read(files, now)?.ends_at;
    ensure!(ends_at - now > CERTIFICATE_LEFT_MIN, "INTAKE_TLS_CERT ends at {}: renew it", timestamp(ends_at));
    Ok(format!("good until {}", timestamp(ends_at)))
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
    settings.server.greet().context("INTAKE_SMTP_URL")?;
    Ok("the server answers".to_owned())
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

fn disk(configuration: &Configuration) -> anyhow::Result<String> {
    let is_embedded = configuration.database.is_none();
    let folder = if is_embedded { configuration.data_dir.postgres() } else { PathBuf::from("/var/log") };
    // What is not made yet will be made in the nearest folder that is there.
    let folder = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let found = rustix::fs::statvfs(folder).with_context(|| folder.display().to_string())?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let said = format!("{} MiB free in {}", free >> 20, folder.display());
    ensure!(free >= FREE_MIN, "{said}: the service needs room");
    Ok(if is_embedded { said } else { format!("{said}; look after the database's disk on its own machine") })
}
