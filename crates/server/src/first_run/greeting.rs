//! What is printed in development when the service is ready: its addresses, and a command to try it with.

use std::net::SocketAddr;
use std::path::Path;

use intake_domain::Environment;
use intake_http::example_patient;

use crate::commands::output;
use crate::settings::configuration::Configuration;
use crate::settings::data_dir::DataDir;

/// Prints the greeting. In production the addresses are in the log.
pub(crate) fn greet(
    data_dir: &DataDir,
    base: &str,
    admin_addr: SocketAddr,
    has_demo: bool,
    first_member: Option<String>,
) -> anyhow::Result<()> {
    let mut text = format!(
        "\nintake is ready.\n\n  API        {base}/api/v1\n  Dashboard  {base}/\n  Docs       {base}/docs\n  Probes     http://{admin_addr}/readyz\n"
    );
    if has_demo {
        text += "\nTo create a patient of the Demo Clinic, paste this into a second terminal in the same folder:\n\n";
        text += &curl_line(data_dir, base);
        text += "\n";
    }
    if let Some(way) = first_member {
        text += &format!("\nTo become the first member of the Demo Clinic, {way}\n");
    }
    // The service does not wait until the greeting is read.
    std::thread::Builder::new().name("greeting".into()).spawn(move || output::print(&text))?;
    Ok(())
}

/// The authority of the certificate that the service made for itself, as a word for a shell. None: it made none.
pub(crate) fn authority(configuration: &Configuration) -> Option<String> {
    let is_own = configuration.environment == Environment::Development && configuration.tls_files.is_none();
    is_own.then(|| for_shell(&configuration.data_dir.authority()))
}

fn curl_line(data_dir: &DataDir, base: &str) -> String {
    let (authority, key) = (data_dir.authority(), data_dir.demo_key());
    format!(
        "curl --cacert {} {base}/api/v1/patients -H \"Authorization: Bearer $(cat {})\" -H 'Content-Type: application/json' -d '{}'",
        for_shell(&authority),
        for_shell(&key),
        example_patient(),
    )
}

/// The path for a shell, quoted only if it must be.
fn for_shell(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    if is_plain { text } else { output::quoted(&text) }
}
