//! One of the services that are tortured, which can be killed and started again.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use intake_domain::Environment;
use intake_infra::Prepared;
use intake_test_support::processes::peak_memory;
use intake_test_support::{Service, ServiceBuilder};

use crate::certificate::certificate;
use crate::provider::Provider;
use crate::proxy::{Proxy, Upstream};
use crate::random::Random;
use crate::test_bed_plan::TestBedPlan;

/// Time that a killed service may take to start again while other faults strike.
const START: Duration = Duration::from_secs(120);
/// Between two tries to start it.
const PAUSE: Duration = Duration::from_millis(100);

/// One service.
pub(crate) struct Instance {
    program: String,
    pub(crate) data_dir: PathBuf,
    urls: Prepared,
    settings: Vec<(String, String)>,
    pub(crate) service: Mutex<Service>,
    address: Arc<Mutex<SocketAddr>>,
    pub(crate) proxy: Proxy,
    /// The most memory that any of its killed processes has used.
    memory: AtomicU64,
}

impl Instance {
    pub(crate) fn start(
        plan: &TestBedPlan<'_>,
        data_dir: PathBuf,
        urls: Prepared,
        random: Random,
        provider: Option<&Provider>,
    ) -> anyhow::Result<Self> {
        let program = plan.program.to_string_lossy().into_owned();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let deadline = ("INTAKE_DEADLINE".to_owned(), format!("{}s", plan.deadline.as_secs()));
        let environment = ("INTAKE_ENVIRONMENT".to_owned(), plan.environment.as_str().to_owned());
        let mut settings: Vec<_> = plan.settings.iter().map(owned).chain([deadline, environment]).collect();
        settings.extend(provider.into_iter().flat_map(Provider::settings));
        if plan.environment == Environment::Production {
            settings.extend(certificate(&data_dir.join("tls"))?);
        }
        let service = start(&program, &data_dir, &urls, &settings)?;
        let address = Arc::new(Mutex::new(service.https.context("an HTTPS listener")?));
        let proxy = Proxy::before(Upstream::Tcp(Arc::clone(&address)), Ipv4Addr::LOCALHOST, random)?;
        let (service, memory) = (Mutex::new(service), AtomicU64::new(0));
        Ok(Self { program, data_dir, urls, settings, service, address, proxy, memory })
    }

    pub(crate) fn kill_and_start(&self, variables: &[(&str, String)]) -> anyhow::Result<()> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let settings: Vec<_> = self.settings.iter().cloned().chain(variables).collect();
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        self.memory.fetch_max(peak_memory(service.process()).unwrap_or_default(), Ordering::Relaxed);
        if !service.has_ended() {
            service.signal("KILL");
            service.wait();
        }
        // Another fault may keep the database away, without which no service starts.
        let until = Instant::now() + START;
        *service = loop {
            match start(&self.program, &self.data_dir, &self.urls, &settings) {
                Err(_) if Instant::now() < until => std::thread::sleep(PAUSE),
                started => break started?,
            }
        };
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = service.https.context("an HTTPS listener")?;
        Ok(())
    }

    pub(crate) fn peak_memory(&self) -> u64 {
        let process = self.service.lock().unwrap_or_else(PoisonError::into_inner).process();
        peak_memory(process).unwrap_or_default().max(self.memory.load(Ordering::Relaxed))
    }
}

fn start(program: &str, data_dir: &Path, urls: &Prepared, settings: &[(String, String)]) -> anyhow::Result<Service> {
    let builder = ServiceBuilder::in_folder(program, data_dir)
        .database_urls(&urls.service, &urls.owner)
        .setting("INTAKE_HTTP_ADDR", "off")
        .setting("INTAKE_RATE_LIMIT", "off")
        // Sign-ins are limited by address, so some clients pretend to come from many.
        .setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1")
        .setting("INTAKE_LOG", "warn,intake=info");
    let builder = settings.iter().fold(builder, |builder, (name, value)| builder.setting(name, value));
    builder.try_start().map_err(|output| anyhow!("a service did not start: {output}"))
}
