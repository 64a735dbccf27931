//! A database on another machine: the real program over TLS to a real PostgreSQL, which would take clear text as well.
//! What cannot be verified is refused, and whatever is used is encrypted.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking and say why")]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{ApiKey, Environment, KeyFormat};
use intake_infra::embedded::{EmbeddedPostgres, Settings};
use intake_infra::{DatabaseUrl, Durability};
use intake_test_support::processes::send as signal;
use intake_test_support::{ServiceBuilder, WithCount, complaint_in, create_request, free_port, patient, wait_for};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::Value;
use tempfile::TempDir;

/// Name in the server's certificate. No machine has this name: addresses of the tests also say where it is.
const HOST: &str = "db.example";
const PASSWORD: &str = "Canary-Bird";
/// Who may connect: the certified role with a client certificate and no password, others with a password. The server
/// itself would take clear text.
const WHO_MAY_CONNECT: &str = "local all all trust
hostssl all register_certified 127.0.0.1/32 cert
host all all 127.0.0.1/32 scram-sha-256
";

/// A PostgreSQL of its own that offers TLS, stopped when dropped.
struct Server {
    child: Child,
    port: u16,
    owner: DatabaseUrl,
    authority: Authority,
    folder: TempDir,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // PostgreSQL, which does not run as root, must be able to enter it.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).unwrap();
        let made = folder.path().join("made");
        let embedded = EmbeddedPostgres::start(&Settings {
            folder: made.clone(),
            durability: Durability::Full,
            programs: None,
            user: std::process::id(),
        });
        let owner = embedded.as_ref().unwrap().owner_url("postgres");
        let options = fs::read_to_string(made.join("data/postmaster.opts")).unwrap();
        // An embedded server listens on its socket alone. Its data is served by another, where its guard does not look.
        drop(embedded);
        let data = folder.path().join("data");
        fs::rename(made.join("data"), &data).unwrap();

        // Not our own account if we are root.
        let account = fs::metadata(&data).unwrap();
        let authority = Authority::new("Clinic");
        let [certificate, key] = authority.issue(&data, "server", HOST);
        for file in [certificate, key, authority.save(&data, "clients.pem")] {
            chown(file, Some(account.uid()), Some(account.gid())).unwrap();
        }
        let sockets = made.join("socket");
        let port = free_port();
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{}'\nlog_connections = on\n\
             ssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'\nssl_ca_file = 'clients.pem'\n",
            sockets.display()
        );
        fs::write(data.join("postgresql.auto.conf"), settings).unwrap();
        fs::write(data.join("pg_hba.conf"), WHO_MAY_CONNECT).unwrap();
        let mut command = Command::new(options.split_whitespace().next().unwrap());
        if rustix::process::geteuid().is_root() {
            command.uid(account.uid()).gid(account.gid());
        }
        let log = File::create(folder.path().join("log")).unwrap();
        // A group of its own, which Ctrl-C does not reach.
        command.arg("-D").arg(&data).process_group(0).current_dir(&data).env("LC_ALL", "C");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let owner = format!("{} port={port}", owner.expose()).parse().unwrap();
        let server = Self { child, port, owner, authority, folder };
        wait_for("PostgreSQL", || PgConnection::establish(server.owner.expose()).is_ok());
        server.administer(&format!(
            "CREATE ROLE register_owner LOGIN PASSWORD '{PASSWORD}';
             CREATE ROLE register_service LOGIN PASSWORD '{PASSWORD}';
             CREATE ROLE register_certified LOGIN"
        ));
        server.administer("CREATE DATABASE intake OWNER register_owner");
        server
    }

    fn administer(&self, sql: &str) {
        PgConnection::establish(self.owner.expose()).unwrap().batch_execute(sql).unwrap();
    }

    /// Returns what a role on another machine would use, with these parameters.
    fn url(&self, role: &str, parameters: &str) -> String {
        self.url_of(HOST, role, parameters)
    }

    fn url_of(&self, host: &str, role: &str, parameters: &str) -> String {
        let port = self.port;
        // A busy machine may take longer to answer than a database that is well.
        let place = format!("hostaddr=127.0.0.1&connect_timeout=30{parameters}");
        format!("postgres://{role}:{PASSWORD}@{host}:{port}/intake?{place}")
    }

    /// The parameters that have the server verified.
    fn verified(&self) -> String {
        let root = self.authority.save(self.folder.path(), "root.pem");
        format!("&sslmode=verify-full&sslrootcert={}", root.display())
    }

    /// The program with one address for its role and for the owner.
    fn program(&self, url: &str) -> ServiceBuilder {
        let program = ServiceBuilder::new(env!("CARGO_BIN_EXE_intake")).setting("DATABASE_URL", url);
        // Where nobody has a folder .postgresql.
        program.setting("HOME", self.folder.path())
    }

    /// The line with which the program refuses to start.
    #[track_caller]
    fn complaint(&self, url: &str) -> String {
        complaint(self.program(url))
    }

    /// The connections over the network that the server has accepted, as its log tells.
    fn authorised(&self) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
        let is_ours = |line: &&str| line.contains("connection authorized: user=register_");
        log.lines().filter(is_ours).map(str::to_owned).collect()
    }

    #[track_caller]
    fn assert_all_encrypted(&self) {
        let all = self.authorised();
        assert!(!all.is_empty());
        assert!(all.iter().all(|line| line.contains("SSL enabled (protocol=TLSv1.3")), "{all:#?}");
    }

    fn count(&self, from: &str) -> i64 {
        let query = diesel::sql_query(format!("SELECT count(*) AS count FROM {from}"));
        let database = format!("{} dbname=intake", self.owner.expose());
        query.get_result::<WithCount>(&mut PgConnection::establish(&database).unwrap()).unwrap().count
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // At once, as nobody needs the data any more.
        signal("QUIT", &self.child.id().to_string());
        let _ = self.child.wait();
    }
}

/// A certificate authority.
struct Authority {
    params: CertificateParams,
    key: KeyPair,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self { params, key: KeyPair::generate().unwrap() }
    }

    /// Writes its own certificate.
    fn save(&self, folder: &Path, name: &str) -> PathBuf {
        let file = folder.join(name);
        fs::write(&file, self.params.self_signed(&self.key).unwrap().pem()).unwrap();
        file
    }

    /// Writes a certificate for a host or a role, and its key.
    fn issue(&self, folder: &Path, file: &str, subject: &str) -> [PathBuf; 2] {
        let mut params = CertificateParams::new(vec![subject.replace('_', "-")]).unwrap();
        params.distinguished_name.push(DnType::CommonName, subject);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &Issuer::from_params(&self.params, &self.key)).unwrap();
        let files = [folder.join(format!("{file}.pem")), folder.join(format!("{file}.key"))];
        fs::write(&files[0], certificate.pem()).unwrap();
        fs::write(&files[1], key.serialize_pem()).unwrap();
        fs::set_permissions(&files[1], Permissions::from_mode(0o600)).unwrap();
        files
    }
}

/// Everything that a program says when it refuses, which must be one line without the password.
#[track_caller]
fn complaint(builder: ServiceBuilder) -> String {
    complaint_after(0, builder)
}

/// The same where this many warnings come first.
#[track_caller]
fn complaint_after(warnings: usize, builder: ServiceBuilder) -> String {
    let output = builder.run();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.lines().count() == warnings + 1, "{text}");
    assert!(!text.contains(PASSWORD), "{text}");
    complaint_in(text.as_bytes())
}

/// Returns what a command that succeeds prints.
#[track_caller]
fn printed(builder: ServiceBuilder, arguments: &[&str]) -> Value {
    let output =
        arguments.iter().fold(builder, |builder, argument| builder.argument(argument)).argument("--json").run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The query in docs/operations/production.md that begins so.
fn documented(start: &str) -> String {
    let document =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations/production.md")).unwrap();
    let block = document.split("```sql\n").skip(1).filter_map(|rest| rest.split_once(";\n```"));
    block.map(|(block, _)| block).find(|block| block.starts_with(start)).unwrap().to_owned()
}

fn in_production(builder: ServiceBuilder) -> ServiceBuilder {
    let builder = builder.setting("INTAKE_ENVIRONMENT", "production").setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1");
    builder.setting("INTAKE_DRAIN_DELAY", "0s")
}

/// Migrates, makes a key, serves and creates a patient as this role.
fn create_a_patient(server: &Server, role: &str, url: &str, owner: &str) {
    let program = || in_production(server.program(url).setting("INTAKE_MIGRATION_DATABASE_URL", owner));
    printed(program(), &["migrate", "--service-role", role]);
    let organisation = printed(program(), &["organisation", "create", "--name", "Harbour Clinic"]);
    let of = organisation["id"].as_str().unwrap();
    let key = printed(program(), &["key", "create", "--organisation", of, "--name", "Booking system"]);
    let format = KeyFormat::new(&"intake".parse().unwrap(), Environment::Production);
    let key: ApiKey = format.parse(key["key"].as_str().unwrap()).unwrap();

    let running = program().start();
    let request = create_request(&key, &[("X-Forwarded-Proto", "https")], patient().to_string().as_bytes());
    assert_eq!(running.plain_client().send(&request).status, 201);
    running.wait_until_ready();
    let shown = format!("({}) AS shown WHERE usename = '{role}'", documented("SELECT usename"));
    assert!(server.count(&format!("{shown} AND ssl")) > 0, "its connections");
    assert_eq!(server.count(&format!("{shown} AND ssl IS NOT true")), 0, "in clear");
    assert_eq!(server.count("patients"), 1);
    let warned = running.output().contains("another server could pose as it");
    assert_eq!(warned, !url.contains("verify-full"), "{}", running.output());
    assert!(!running.output().contains(PASSWORD), "{}", running.output());
    drop(running);
    server.assert_all_encrypted();
}

#[test]
fn with_the_server_verified_the_register_is_migrated_and_served_over_encrypted_connections_alone() {
    let server = Server::start();
    let verified = server.verified();
    let [service, owner] = ["register_service", "register_owner"].map(|role| server.url(role, &verified));
    create_a_patient(&server, "register_service", &service, &owner);
}

#[test]
fn an_address_without_sslmode_is_encrypted_and_one_that_allows_clear_text_is_refused() {
    let server = Server::start();
    let unset = server.url("register_service", "");
    for mode in ["disable", "allow", "prefer"] {
        let by_address = server.complaint(&server.url("register_service", &format!("&sslmode={mode}")));
        let by_variable = complaint(server.program(&unset).setting("PGSSLMODE", mode));
        let expected = format!(
            "intake: DATABASE_URL is wrong: leads to another machine, and sslmode={mode} allows a connection that is not \
             encrypted: set sslmode=verify-full, and sslrootcert to a file with the certificate of its authority"
        );
        assert_eq!((&by_address, &by_variable), (&expected, &expected));
    }
    assert_eq!(server.authorised(), [""; 0], "no connection was made");
    create_a_patient(&server, "register_service", &unset, &server.url("register_owner", ""));
    // The variable is not weakened by the default for addresses: without an authority nobody is trusted.
    let verified = complaint(server.program(&unset).setting("PGSSLMODE", "verify-full"));
    assert!(verified.contains("set sslrootcert"), "{verified}");
}

#[test]
fn a_server_that_cannot_be_verified_is_refused_in_one_line_that_says_what_to_do() {
    let server = Server::start();
    let with_root =
        |file: &Path| server.url("register_service", &format!("&sslmode=verify-full&sslrootcert={}", file.display()));
    let assert_told = |line: &str, fault: &str, advice: &str| {
        assert!(line.starts_with("intake: DATABASE_URL: cannot connect to the database: "), "{line}");
        assert!(line.contains(fault) && line.contains(&format!(": {advice}")), "{line}");
        assert!(!line.contains("disable"), "{line}");
    };
    let stranger = Authority::new("Stranger").save(server.folder.path(), "stranger.pem");
    let wrong_authority = "sslrootcert must hold the authority that issued the server's certificate";
    assert_told(&server.complaint(&with_root(&stranger)), "certificate verify failed", wrong_authority);
    let system = server.url("register_service", "&sslrootcert=system");
    assert_told(&server.complaint(&system), "certificate verify failed", wrong_authority);
    // One that was made anew under the old name.
    let namesake = Authority::new("Clinic").save(server.folder.path(), "namesake.pem");
    assert_told(&server.complaint(&with_root(&namesake)), "SSL error", wrong_authority);

    let other_name = server.url_of("other.example", "register_service", &server.verified());
    let fault = "server certificate for \"db.example\" does not match host name \"other.example\"";
    assert_told(&server.complaint(&other_name), fault, "use a name that the certificate is for");

    let set_root = "set sslrootcert to a file with the certificate of the server's authority";
    let missing = with_root(Path::new("/etc/intake/none.pem"));
    assert_told(&server.complaint(&missing), "root certificate file \"/etc/intake/none.pem\" does not exist", set_root);
    let unnamed = server.url("register_service", "&sslmode=verify-full");
    assert_told(&server.complaint(&unnamed), ".postgresql/root.crt\" does not exist", set_root);

    assert_eq!(server.authorised(), [""; 0], "no password was sent");
    server.administer("ALTER SYSTEM SET ssl = off");
    server.administer("SELECT pg_reload_conf()");
    let url = server.url("register_service", &server.verified());
    // The server takes a moment to read its settings again.
    wait_for("a server without TLS", || server.complaint(&url).contains("does not support SSL"));
    let advice = "set ssl = on there";
    assert_told(&server.complaint(&url), "server does not support SSL, but SSL was required", advice);
    // A warning that nothing verifies the server comes first here.
    let unverified = complaint_after(1, server.program(&server.url("register_service", "")));
    assert_told(&unverified, "server does not support SSL, but SSL was required", advice);
}

#[test]
fn a_client_certificate_replaces_the_password() {
    let server = Server::start();
    let present = |issuer: &Authority, name: &str| {
        let [certificate, key] = issuer.issue(server.folder.path(), name, name);
        format!("{}&sslcert={}&sslkey={}", server.verified(), certificate.display(), key.display())
    };
    let complaint_with = |parameters: &str| server.complaint(&server.url("register_certified", parameters));
    let without = complaint_with(&server.verified());
    assert!(without.contains(": set sslcert and sslkey"), "{without}");
    let of_another = complaint_with(&present(&server.authority, "register_service"));
    assert!(of_another.contains(": sslcert must be issued for this role"), "{of_another}");
    let untrusted = complaint_with(&present(&Authority::new("Stranger"), "register_certified"));
    assert!(untrusted.contains(": the server must have the authority that issued sslcert"), "{untrusted}");
    let readable = present(&server.authority, "register_certified");
    let key = server.folder.path().join("register_certified.key");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let readable = complaint_with(&readable);
    assert!(readable.contains(": sslkey must be a file that this account can read, and nobody else"), "{readable}");
    assert_eq!(server.authorised(), [""; 0], "nobody was let in");

    let certified = present(&server.authority, "register_certified");
    let owner = server.url("register_owner", &server.verified());
    create_a_patient(&server, "register_certified", &server.url("register_certified", &certified), &owner);
}

#[test]
fn a_service_file_cannot_weaken_what_the_address_says() {
    let server = Server::start();
    let file = server.folder.path().join("services");
    let place = format!("host={HOST}\nhostaddr=127.0.0.1\nport={}\ndbname=intake", server.port);
    let role = format!("user=register_service\npassword={PASSWORD}");
    fs::write(&file, format!("[register]\n{place}\n{role}\nsslmode=disable\n")).unwrap();
    let with_file = |url: &str| server.program(url).setting("PGSERVICEFILE", &file);
    let refused = complaint(with_file("service=register"));
    let expected = "intake: DATABASE_URL is wrong: names a service of libpq's, which may lead to another machine: \
        set sslmode in the address itself, as in service=intake sslmode=verify-full";
    assert_eq!(refused, expected);

    let verified = format!("service=register connect_timeout=30 {}", server.verified().replace('&', " "));
    let owner = server.url("register_owner", &server.verified());
    let migrate = with_file(&verified).setting("INTAKE_MIGRATION_DATABASE_URL", &owner);
    printed(in_production(migrate), &["migrate", "--service-role", "register_service"]);
    let running = in_production(with_file(&verified)).start();
    running.wait_until_ready();
    drop(running);
    server.assert_all_encrypted();
}
