//! A running service: the real program, on free ports, with a database of its own.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use intake_domain::ApiKey;
use intake_infra::{DatabaseUrl, Durability};
use rustix::io::ioctl_fionbio;
use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Client, Response, request};
use crate::database::TestDatabase;
use crate::failure::hold;
use crate::processes;

/// Enough for a debug build that starts an embedded database for the first time, on a machine that other programs keep
/// busy. Nobody waits that long unless something is wrong.
const START_TIMEOUT: Duration = Duration::from_secs(180);
/// Time for which the last lines of a program that has ended are read.
const LAST_LINES: Duration = Duration::from_secs(5);
/// Message of libpq about a server that has not answered in time.
const NO_ANSWER_YET: &str = "timeout expired";
/// Time for which requests wait, unless a test says otherwise: on a busy machine PostgreSQL may stand still for longer
/// than the default.
const DEADLINE: &str = "30s";

/// Settings with which to run a service.
pub struct ServiceBuilder {
    command: Command,
    data_dir: PathBuf,
    own_data_dir: Option<TempDir>,
    /// Passed to the program as its standard input and output.
    sockets: Option<[TcpListener; 2]>,
}

/// A running service, killed when dropped.
pub struct Service {
    child: Child,
    output: Output,
    data_dir: PathBuf,
    _own_data_dir: Option<TempDir>,
    /// The address of the HTTPS listener.
    pub https: Option<SocketAddr>,
    /// The address of the plain listener.
    pub http: Option<SocketAddr>,
    /// The address of the admin listener.
    pub admin: SocketAddr,
}

/// Output of a program, read by threads.
struct Output {
    text: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl ServiceBuilder {
    /// The program, on free ports, with a data folder of its own and an embedded database.
    #[must_use]
    pub fn new(program: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut builder = Self::in_folder(program, folder.path());
        builder.own_data_dir = Some(folder);
        builder
    }

    /// The program with this data folder.
    #[must_use]
    pub fn in_folder(program: &str, data_dir: &Path) -> Self {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("INTAKE_") || ["DATABASE_URL", "SUDO_USER", "USER"].contains(&name.as_str()) {
                command.env_remove(name);
            }
        }
        command.env("INTAKE_DATA_DIR", data_dir).env("INTAKE_DEADLINE", DEADLINE);
        for listener in ["INTAKE_HTTPS_ADDR", "INTAKE_HTTP_ADDR", "INTAKE_ADMIN_ADDR"] {
            command.env(listener, "127.0.0.1:0");
        }
        Self { command, data_dir: data_dir.to_owned(), own_data_dir: None, sockets: None }
    }

    /// Uses this database: with the service's role to serve, and the owner's to migrate.
    #[must_use]
    pub fn database(self, database: &TestDatabase) -> Self {
        self.database_urls(&database.service, &database.owner)
    }

    /// Uses the database at these addresses.
    #[must_use]
    pub fn database_urls(self, service: &DatabaseUrl, owner: &DatabaseUrl) -> Self {
        let builder = match service.durability() {
            Durability::Full => self,
            Durability::None => self.setting("INTAKE_DURABILITY", "none"),
        };
        builder.setting("DATABASE_URL", service.expose()).setting("INTAKE_MIGRATION_DATABASE_URL", owner.expose())
    }

    /// Uses this data folder instead.
    #[must_use]
    pub fn data_folder(mut self, data_dir: &Path) -> Self {
        self.command.env("INTAKE_DATA_DIR", data_dir);
        self.data_dir = data_dir.to_owned();
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn setting(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs under this account, which only root can choose.
    #[must_use]
    pub fn account(mut self, user: u32) -> Self {
        self.command.uid(user).gid(user);
        self
    }

    /// Limits the program's open files.
    #[must_use]
    pub fn open_files(mut self, max: usize) -> Self {
        self.command = self.in_shell(&format!("ulimit -n {max}; exec \"$0\" \"$@\""));
        self
    }

    /// Passes open sockets to the program by name, as systemd does. What it prints goes to standard error then.
    #[must_use]
    pub fn sockets(mut self, sockets: [(&str, &TcpListener); 2]) -> Self {
        let [(first, _), (second, _)] = sockets;
        self.sockets = Some(sockets.map(|(_, socket)| socket.try_clone().expect("a socket can be shared")));
        // A parent can pass on only these two; the shell moves them to where they belong.
        let take_places = "exec 3<&0 4<&1 0</dev/null 1>&2";
        let names = format!("LISTEN_FDS=2 LISTEN_FDNAMES={first}:{second} LISTEN_PID=$$");
        self.command = self.in_shell(&format!("{take_places}; export {names}; exec \"$0\" \"$@\""));
        self
    }

    /// The command as the arguments of a shell that runs this first.
    fn in_shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(self.command.get_program()).args(self.command.get_args());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Runs in this folder, to which a relative data folder refers.
    #[must_use]
    pub fn working_folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self.data_dir = folder.join(self.data_dir);
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.command.arg(argument);
        self
    }

    /// Sends standard output to a disk that is full.
    #[must_use]
    pub fn full_stdout(mut self) -> Self {
        self.command.stdout(full_disk());
        self
    }

    /// Sends standard output to a pipe whose reader has gone.
    #[must_use]
    pub fn unread_stdout(mut self) -> Self {
        self.command.stdout(unread_pipe());
        self
    }

    /// Sends standard error to a disk that is full.
    #[must_use]
    pub fn full_stderr(mut self) -> Self {
        self.command.stderr(full_disk());
        self
    }

    /// Runs the program to its end.
    #[must_use]
    pub fn run(mut self) -> std::process::Output {
        self.command.stdin(Stdio::null());
        self.pass_sockets();
        self.command.output().expect("the program runs")
    }

    /// Starts the program without waiting for anything.
    #[must_use]
    pub fn spawn(mut self) -> Child {
        self.command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.command.spawn().expect("the program runs")
    }

    /// Starts the program, whose output goes into a pipe that is full and that nobody reads while the returned end is
    /// kept.
    #[must_use]
    pub fn spawn_unread(mut self) -> (Child, PipeReader) {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        ioctl_fionbio(&writer, true).expect("a pipe that does not wait");
        while writer.write(&[b'\n'; 4096]).is_ok() {}
        ioctl_fionbio(&writer, false).expect("a pipe that waits");
        let error = writer.try_clone().expect("a pipe can be shared");
        self.command.process_group(0).stdin(Stdio::null()).stdout(writer).stderr(error);
        (self.command.spawn().expect("the program runs"), reader)
    }

    /// Starts the service and waits until it listens.
    #[must_use]
    pub fn start(self) -> Service {
        self.try_start().unwrap_or_else(|output| panic!("the service did not start:\n{output}"))
    }

    fn pass_sockets(&mut self) {
        if let Some([first, second]) = self.sockets.take() {
            self.command.stdin(OwnedFd::from(first)).stdout(OwnedFd::from(second));
        }
    }

    fn spawn_gathering(&mut self) -> (Child, Output) {
        let mut child = self.command.spawn().expect("the program runs");
        let text = Arc::new(Mutex::new(String::new()));
        let stderr = gather(child.stderr.take().expect("piped"), &text);
        let stdout = child.stdout.take().map(|stdout| gather(stdout, &text));
        (child, Output { text, readers: stdout.into_iter().chain([stderr]).collect() })
    }

    /// Starts the service and waits until it listens, or returns its output.
    pub fn try_start(mut self) -> Result<Service, String> {
        // In a group of its own, as a shell would start it.
        self.command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let is_repeatable = self.sockets.is_none();
        self.pass_sockets();
        let (mut child, mut output) = self.spawn_gathering();
        let started = Instant::now();
        loop {
            let has_ended = child.try_wait().expect("a child").is_some();
            if has_ended {
                output.wait_for_last_lines();
            }
            let text = output.so_far();
            // The last listener in the log.
            if let Some(admin) = address_in(&text, "listening for probes on ") {
                let https = address_in(&text, "listening for HTTPS on ");
                let http = address_in(&text, "listening for plain HTTP on ");
                return Ok(Service {
                    child,
                    output,
                    data_dir: self.data_dir,
                    _own_data_dir: self.own_data_dir,
                    https,
                    http,
                    admin,
                });
            }
            // The tests' own database may be slow to answer while other programs use the machine.
            if has_ended && is_repeatable && text.contains(NO_ANSWER_YET) && started.elapsed() < START_TIMEOUT {
                (child, output) = self.spawn_gathering();
                continue;
            }
            if has_ended || started.elapsed() > START_TIMEOUT {
                let _ = child.kill();
                let _ = child.wait();
                output.wait_for_last_lines();
                return Err(output.so_far());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Service {
    /// A client of the HTTPS listener, which trusts the local authority.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::tls(self.https.expect("an HTTPS listener"), &self.data_dir.join("tls/ca.pem"))
    }

    /// A client of the plain listener.
    #[must_use]
    pub fn plain_client(&self) -> Client {
        Client::plain(self.http.expect("a plain listener"))
    }

    /// Returns where probes and metrics are served.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    /// Sends a GET request to the admin listener.
    #[must_use]
    pub fn probe(&self, path: &str) -> Response {
        Client::plain(self.admin).send(&request("GET", path, &[], b""))
    }

    /// Waits until a probe finds the service ready. A single probe may find a busy machine.
    pub fn wait_until_ready(&self) {
        wait_for("readiness", || self.probe("/readyz").status == 200);
    }

    /// Sends a patient, as most integrations would.
    #[must_use]
    pub fn create(&self, key: &ApiKey, patient: &Value) -> Response {
        self.create_with(key, &[], patient.to_string().as_bytes())
    }

    /// Sends a body with more headers.
    #[must_use]
    pub fn create_with(&self, key: &ApiKey, headers: &[(&str, &str)], body: &[u8]) -> Response {
        self.client().send(&create_request(key, headers, body))
    }

    /// The process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Returns how much memory the process uses, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the process lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line for it");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
    }

    /// Returns how much processor time the process has used.
    #[must_use]
    pub fn processor_time(&self) -> Duration {
        processes::processor_time(self.child.id()).expect("the process lives")
    }

    /// The data folder.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// All output of the service so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.output.so_far()
    }

    /// The text of the output. While it is locked, nothing more is read from the service.
    #[must_use]
    pub fn output_handle(&self) -> Arc<Mutex<String>> {
        Arc::clone(&self.output.text)
    }

    /// Sends a signal, as `kill` names it.
    pub fn signal(&self, name: &str) {
        processes::send(name, &self.child.id().to_string());
    }

    /// Returns whether the process is gone.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> ExitStatus {
        let status = wait_for_end(&mut self.child);
        self.output.wait_for_last_lines();
        status
    }

    /// Stops the service and waits for its end.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let (true, Ok(output)) = (std::thread::panicking(), self.output.text.try_lock()) {
            eprintln!("\nThe service logged:\n{output}");
        }
        hold(|| {
            let variables = std::fs::read_to_string(format!("/proc/{}/environ", self.child.id())).unwrap_or_default();
            let owner = |variable: &'_ str| variable.starts_with("INTAKE_MIGRATION_DATABASE_URL=");
            let database = variables.split('\0').find(|variable| owner(variable)).and_then(|all| all.split_once('='));
            let (https, http, admin) = (self.https, self.http, self.admin);
            format!(
                "The service listens on {https:?}, {http:?} and {admin}.\npsql \"{}\"",
                database.unwrap_or_default().1
            )
        });
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bytes of a request to create a patient.
#[must_use]
pub fn create_request(key: &ApiKey, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let authorization = format!("Bearer {}", key.expose());
    let mut all = vec![("Authorization", authorization.as_str())];
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        all.push(("Content-Type", "application/json"));
    }
    all.extend_from_slice(headers);
    request("POST", "/api/v1/patients", &all, body)
}

/// The last line of what a program said on standard error, as a command says it; a service's is a line of its log.
#[must_use]
pub fn complaint_in(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().last().unwrap_or_default();
    match serde_json::from_str::<Value>(line) {
        Ok(logged) => format!("intake: {}", logged.get("message").and_then(Value::as_str).unwrap_or_default()),
        Err(_) => line.to_owned(),
    }
}

/// A file on a disk that is full.
#[must_use]
pub fn full_disk() -> File {
    File::options().write(true).open("/dev/full").expect("a device that is always full")
}

/// A pipe whose reader has gone.
#[must_use]
pub fn unread_pipe() -> PipeWriter {
    std::io::pipe().expect("a pipe").1
}

/// Waits until a condition holds.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        let waited = started.elapsed();
        assert!(waited < START_TIMEOUT, "waited too long for {what}");
        // What is asked often takes the time of what it waits for.
        std::thread::sleep((waited / 10).clamp(Duration::from_millis(10), Duration::from_millis(50)));
    }
}

/// Waits until a program that was started has ended.
pub fn wait_for_end(child: &mut Child) -> ExitStatus {
    let mut ended = None;
    wait_for("the end of the program", || {
        ended = child.try_wait().expect("a child");
        ended.is_some()
    });
    ended.expect("it has ended")
}

impl Output {
    fn so_far(&self) -> String {
        self.text.lock().expect("no panic").clone()
    }

    /// For a program that has ended. A child that it left behind can keep the pipe open, and is not waited for.
    fn wait_for_last_lines(&self) {
        let ended = Instant::now();
        while !self.readers.iter().all(JoinHandle::is_finished) && ended.elapsed() < LAST_LINES {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn gather(stream: impl std::io::Read + Send + 'static, output: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let output = Arc::clone(output);
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let mut output = output.lock().expect("no panic");
            output.push_str(&line);
            output.push('\n');
        }
    })
}

fn address_in(text: &str, before: &str) -> Option<SocketAddr> {
    let rest = text.split_once(before)?.1;
    rest.get(..rest.find('"')?)?.parse().ok()
}
