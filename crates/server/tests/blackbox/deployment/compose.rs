//! Two instances behind HAProxy, as docs/operations/compose.yaml describes them: its very settings and commands are run
//! here, with Debian's HAProxy and the database of the tests.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use intake_domain::{ApiKey, Environment, KeyFormat};
use intake_infra::SERVICE_ROLE;
use intake_test_support::{
    Client, Response, Service, ServiceBuilder, TestDatabase, create_request, leave_out, patient, processes, wait_for,
};
use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;
use yaml_rust2::{Yaml, YamlLoader};

use crate::deployment::operations::folder;
use crate::deployment::proxies::{HAPROXY, free_address};
use crate::fixtures::program;

/// Variables that `.env` must hold.
const VARIABLES: [(&str, &str); 1] = [("PUBLIC_URL", "https://intake.example")];
/// Folder of the secrets in a container.
const SECRETS: &str = "/run/secrets/";
/// In the test a key may send as much at once to each instance, and almost nothing after that.
const RATE: &str = "1/10";
const AT_ONCE: usize = 10;
/// Connections of an instance, as docs/operations/production.md says.
const CONNECTIONS_MAX: i64 = 10;

#[test]
fn the_beginners_example_starts_what_the_image_is_called() {
    let text = fs::read_to_string(folder().join("../../compose.dev.yaml")).unwrap();
    let services = &YamlLoader::load_from_str(&text).unwrap()[0]["services"];
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(services["intake"]["image"].as_str(), Some(&*format!("intake:{version}")));
    assert!(text.contains(&format!("intake-{version}-image.tar")));
    // The image has no account of another name than its own.
    assert!(services["intake"]["user"].as_str().unwrap().parse::<u32>().is_ok());
    assert_eq!(services["intake"]["environment"]["INTAKE_ADMIN_ADDR"].as_str(), Some("127.0.0.1:9464"));
    // Its settings are settings: none is misspelt, and with them the service is ready.
    let database = TestDatabase::new();
    let settings = services["intake"]["environment"].as_hash().unwrap().iter();
    let settings = settings.map(|(name, value)| (name.as_str().unwrap(), value.as_str().unwrap()));
    let others = ["DATABASE_URL", "INTAKE_DATA_DIR", "INTAKE_ADMIN_ADDR"];
    let settings = settings.filter(|(name, _)| !others.contains(name));
    let builder = program().database_urls(&database.owner, &database.owner);
    let service = settings.fold(builder, |builder, (name, value)| builder.setting(name, value)).start();
    service.wait_until_ready();
    assert!(!service.output().contains("unknown setting"), "{}", service.output());
}

/// Needed only where patients are delivered.
const OF_A_DELIVERY: [&str; 2] = ["DELIVER_ORGANISATION", "DELIVER_TO"];

/// The file, with the variables put in.
struct Compose {
    text: String,
    file: Yaml,
    /// The files that the services of the test read in the place of those in the containers.
    secrets: TempDir,
}

impl Compose {
    fn read() -> Self {
        let mut text = fs::read_to_string(folder().join("compose.yaml")).unwrap();
        for (name, value) in VARIABLES {
            let reference = format!("${{{name}:?}}");
            assert!(text.contains(&reference), "{name} is not used");
            text = text.replace(&reference, value);
        }
        for name in OF_A_DELIVERY {
            text = text.replace(&format!("${{{name}:-}}"), "used");
        }
        assert!(!text.contains("${"), "a variable is not described");
        let file = YamlLoader::load_from_str(&text).unwrap().remove(0);
        Self { text, file, secrets: tempfile::tempdir().unwrap() }
    }

    fn service(&self, name: &str) -> &Yaml {
        &self.file["services"][name]
    }

    fn services(&self) -> Vec<&str> {
        self.file["services"].as_hash().unwrap().keys().map(|name| name.as_str().unwrap()).collect()
    }

    /// The secrets that a service can read.
    fn secrets_of(&self, name: &str) -> Vec<&str> {
        let secrets = self.service(name)["secrets"].as_vec();
        secrets.into_iter().flatten().map(|secret| secret.as_str().unwrap()).collect()
    }

    /// Content that the commands at the head of the file write into a secret.
    fn secret(&self, name: &str) -> String {
        let end = format!(" > secrets/{name}");
        let command = self.text.lines().find_map(|line| line.strip_suffix(&end));
        let command = command.unwrap_or_else(|| panic!("{name} is not described"));
        let Some((_, url)) = command.split_once("echo \"") else { return format!("SecretOf-{name}") };
        ["owner-password", "service-password"]
            .into_iter()
            .fold(url.trim_end_matches('"').to_owned(), |url, password| {
                url.replace(&format!("$(cat secrets/{password})"), &format!("SecretOf-{password}"))
            })
    }

    fn command(&self, name: &str) -> Vec<&str> {
        self.service(name)["command"].as_vec().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
    }

    fn environment(&self, name: &str) -> BTreeMap<&str, &str> {
        let pairs = self.service(name)["environment"].as_hash().unwrap();
        pairs.iter().map(|(name, value)| (name.as_str().unwrap(), value.as_str().unwrap())).collect()
    }

    /// Returns where others in the network of the containers reach a listener of this service.
    fn address(&self, name: &str, variable: &str) -> SocketAddr {
        let address = self.service(name)["networks"]["intake"]["ipv4_address"].as_str().unwrap();
        let (_, port) = self.environment(name)[variable].rsplit_once(':').unwrap();
        format!("{address}:{port}").parse().unwrap()
    }

    /// The program with the settings of a service; of its database only the name and the folder of the socket are
    /// others.
    fn program(&self, name: &str, database: &TestDatabase) -> ServiceBuilder {
        let mut builder = program();
        for (variable, value) in self.environment(name) {
            let Some(secret) = value.strip_prefix(SECRETS) else {
                builder = builder.setting(variable, value);
                continue;
            };
            assert!(self.secrets_of(name).contains(&secret), "{name} cannot read {secret}");
            let mut url = self.secret(secret);
            let documented = "@/intake?host=/var/run/postgresql";
            assert!(url.contains(documented), "{url}");
            let used = format!("@/{}?host={}", database.name(), database.socket_folder().display());
            url = url.replace(documented, &used);
            if variable == "INTAKE_MIGRATION_DATABASE_URL_FILE" {
                assert!(url.starts_with("postgres://intake_owner:"), "{url}");
                database.owner.expose().clone_into(&mut url);
            }
            let file = self.secrets.path().join(secret);
            fs::write(&file, url + "\n").unwrap();
            builder = builder.setting(variable, file);
        }
        builder
    }
}

/// A member of a service, or of what is merged into it.
fn merged<'a>(of: &'a Yaml, member: &str) -> &'a Yaml {
    let own = &of[member];
    if own.is_badvalue() && !of["<<"].is_badvalue() { merged(&of["<<"], member) } else { own }
}

/// One of the instances, reached by the test's HAProxy on this machine.
struct Instance {
    http: SocketAddr,
    admin: SocketAddr,
    running: Service,
}

impl Instance {
    fn start(compose: &Compose, name: &str, database: &TestDatabase) -> Self {
        let (http, admin) = (free_address(), free_address());
        let builder = compose
            .program(name, database)
            .setting("INTAKE_HTTP_ADDR", http.to_string())
            .setting("INTAKE_ADMIN_ADDR", admin.to_string())
            .setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1")
            .setting("INTAKE_DRAIN_DELAY", "0s")
            .setting("INTAKE_RATE_LIMIT", RATE);
        Self { http, admin, running: builder.start() }
    }

    /// Returns how many answers of a status it has given.
    fn answers(&self, status: u16) -> usize {
        let metrics = self.running.probe("/metrics").text();
        let name = format!("intake_answers_total{{status=\"{status}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().unwrap())
    }
}

/// A running HAProxy, ended when dropped.
struct Proxy {
    child: Child,
    client: Client,
    _folder: TempDir,
}

impl Proxy {
    /// None, where there is no HAProxy.
    fn start(compose: &Compose, instances: &[(&str, &Instance)]) -> Option<Self> {
        let (folder, address) = (tempfile::tempdir().unwrap(), free_address());
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
        let trusted = folder.path().join("ca.pem");
        fs::write(&trusted, &certificate).unwrap();
        fs::write(folder.path().join("intake.pem"), certificate + &key.serialize_pem()).unwrap();

        let mut configuration =
            fs::read_to_string(crate::deployment::operations::folder().join("haproxy.cfg")).unwrap();
        let mut replace = |documented: &str, used: &str| {
            assert!(configuration.contains(documented), "haproxy.cfg and compose.yaml do not fit: {documented}");
            configuration = configuration.replace(documented, used);
        };
        for (name, instance) in instances {
            let [http, admin] = ["INTAKE_HTTP_ADDR", "INTAKE_ADMIN_ADDR"].map(|setting| compose.address(name, setting));
            let used = format!("server {name} {} port {}", instance.http, instance.admin.port());
            replace(&format!("server {name} {http} port {}", admin.port()), &used);
        }
        replace("bind :443", &format!("bind {address}"));
        let mounted = folder.path().to_str().unwrap();
        replace("/etc/haproxy/", &format!("{mounted}/"));
        fs::write(folder.path().join("haproxy.cfg"), configuration).unwrap();

        let command: Vec<_> =
            compose.command("proxy").iter().map(|word| word.replace("/etc/haproxy", mounted)).collect();
        let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap());
        let mut haproxy = Command::new(&command[0]);
        // As its image does: in the foreground.
        haproxy.arg("-db").args(&command[1..]).env("PATH", path).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = haproxy.spawn() else {
            leave_out(&HAPROXY);
            return None;
        };
        let client = Client::tls(address, &trusted);
        let proxy = Self { child, client, _folder: folder };
        wait_for("HAProxy", || TcpStream::connect(address).is_ok());
        Some(proxy)
    }

    fn create(&self, key: &ApiKey) -> Response {
        self.client.send(&create_request(key, &[], patient().to_string().as_bytes()))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        processes::send("TERM", &self.child.id().to_string());
        let _ = self.child.wait();
    }
}

fn json_of(builder: ServiceBuilder, arguments: &[&str]) -> serde_json::Value {
    let output = arguments.iter().fold(builder, |builder, argument| builder.argument(argument)).run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn two_instances_serve_behind_haproxy_and_each_counts_the_rate_for_itself() {
    let (compose, database) = (Compose::read(), TestDatabase::empty_and_durable());
    let migrate = compose
        .command("migrate")
        .iter()
        .fold(compose.program("migrate", &database), |builder, word| builder.argument(word));
    let migrated = migrate.run();
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));

    let [one, two] = ["one", "two"].map(|name| Instance::start(&compose, name, &database));
    let Some(proxy) = Proxy::start(&compose, &[("one", &one), ("two", &two)]) else { return };
    let commands = || compose.program("one", &database);
    let organisation = json_of(commands(), &["organisation", "create", "--name", "Harbour Clinic", "--json"]);
    let id = organisation["id"].as_str().unwrap();
    let key = json_of(commands(), &["key", "create", "--organisation", id, "--name", "Booking system", "--json"]);
    let format = KeyFormat::new(&"intake".parse().unwrap(), Environment::Production);
    let key = format.parse(key["key"].as_str().unwrap()).unwrap();

    // Both are there for HAProxy when both have answered.
    wait_for("both instances", || {
        assert_eq!(proxy.client.send(&intake_test_support::request("GET", "/docs", &[], b"")).status, 200);
        one.answers(200) > 0 && two.answers(200) > 0
    });
    let started = Instant::now();
    let answers: Vec<_> = (0..4 * AT_ONCE).map(|_| proxy.create(&key).status).collect();
    let refilled = 2 * (usize::try_from(started.elapsed().as_secs()).unwrap() + 1);
    let created = answers.iter().filter(|status| **status == 201).count();
    assert!(answers.iter().all(|status| [201, 429].contains(status)), "{answers:?}");
    assert!((2 * AT_ONCE..=2 * AT_ONCE + refilled).contains(&created), "{created} of {}: {answers:?}", answers.len());
    assert!(one.answers(201) >= AT_ONCE && two.answers(201) >= AT_ONCE);
    assert_eq!(database.count("patients"), i64::try_from(created).unwrap());
    let connections =
        database.count("pg_stat_activity WHERE application_name = 'intake' AND datname = current_database()");
    assert!((2..=2 * CONNECTIONS_MAX).contains(&connections), "{connections}");
}

#[test]
fn the_owners_password_is_in_no_instance_and_what_they_name_is_the_services_role() {
    let compose = Compose::read();
    for name in ["one", "two", "deliver", "proxy"] {
        assert!(compose.secrets_of(name).iter().all(|secret| !secret.starts_with("owner-")), "{name}");
    }
    assert!(compose.command("migrate").contains(&SERVICE_ROLE));
    for name in ["migrate", "one", "two"] {
        let url = compose.secret(compose.environment(name)["DATABASE_URL_FILE"].strip_prefix(SECRETS).unwrap());
        assert!(url.starts_with(&format!("postgres://{SERVICE_ROLE}:")), "{url}");
    }
}

#[test]
fn a_secret_is_in_a_file_and_in_no_variable() {
    let compose = Compose::read();
    for name in compose.services() {
        let service = compose.service(name);
        if service["environment"].is_badvalue() {
            continue;
        }
        for (variable, value) in compose.environment(name) {
            let is_secret = variable.contains("PASSWORD") || variable.contains("DATABASE_URL");
            assert_eq!(is_secret, value.starts_with(SECRETS), "{name}: {variable}={value}");
            let secret = value.strip_prefix(SECRETS);
            assert!(secret.is_none_or(|secret| compose.secrets_of(name).contains(&secret)), "{name}: {variable}");
        }
        for secret in compose.secrets_of(name) {
            let file = compose.file["secrets"][secret]["file"].as_str();
            assert_eq!(file, Some(&*format!("./secrets/{secret}")), "{name}");
        }
    }
}

#[test]
fn each_container_has_limits_and_all_but_the_database_are_confined() {
    let compose = Compose::read();
    for name in compose.services() {
        let service = compose.service(name);
        assert!(merged(service, "mem_limit").as_str().is_some(), "{name}");
        assert!(merged(service, "logging")["options"]["max-size"].as_str().is_some(), "{name}");
        let is_confined = merged(service, "read_only").as_bool() == Some(true)
            && merged(service, "cap_drop")[0].as_str() == Some("ALL")
            && merged(service, "security_opt")[0].as_str() == Some("no-new-privileges:true");
        assert_eq!(is_confined, name != "database", "{name}");
    }
}

/// psql reads it, as the database's image does.
#[test]
fn the_services_role_is_made_with_its_password() {
    let (compose, database) = (Compose::read(), TestDatabase::empty());
    let role = database.name();
    let sql = fs::read_to_string(folder().join("roles.sql")).unwrap().replace(SERVICE_ROLE, role);
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(compose.secrets_of("database").contains(&"service-password"));
    let password = compose.secrets.path().join("service-password");
    fs::write(&password, compose.secret("service-password") + "\n").unwrap();
    let documented = format!("{SECRETS}service-password");
    assert!(sql.contains(&documented), "{sql}");
    fs::write(&file, sql.replace(&documented, password.to_str().unwrap())).unwrap();
    let programs = database.texts("SELECT setting FROM pg_config() WHERE name = 'BINDIR'").remove(0);
    let made = Command::new(format!("{programs}/psql"))
        .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname", database.owner.expose(), "--file"])
        .arg(file.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let rights = database.texts(&format!(
        "SELECT rolcanlogin::text || rolsuper::text || (rolpassword LIKE 'SCRAM%')::text FROM pg_authid WHERE rolname = '{role}'"
    ));
    database.administer(&format!("DROP ROLE {role}"));
    assert_eq!(rights, ["truefalsetrue"]);
}

#[test]
fn nobody_but_the_proxy_reaches_the_instances_or_is_trusted_by_them() {
    let compose = Compose::read();
    let in_network = compose.file["services"].as_hash().unwrap().iter();
    let in_network = in_network.filter(|(_, service)| !service["networks"]["intake"].is_badvalue());
    let in_network: Vec<_> = in_network.map(|(name, _)| name.as_str().unwrap()).collect();
    assert_eq!(in_network, ["one", "two", "proxy"]);
    for instance in ["one", "two"] {
        assert!(compose.service(instance)["ports"].is_badvalue(), "{instance} is reached from outside");
        assert_eq!(compose.service(instance)["networks"].as_hash().unwrap().len(), 1);
        let proxy = compose.service("proxy")["networks"]["intake"]["ipv4_address"].as_str();
        assert_eq!(compose.environment(instance).get("INTAKE_TRUSTED_PROXIES").copied(), proxy);
    }
    assert_eq!(compose.service("proxy")["ports"].as_vec().unwrap(), &[Yaml::String("443:443".to_owned())]);
}
