//! Traces: the real program with a collector that decodes what it gets, and with collectors that fail in every way they
//! can, which must not cost a request anything.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking and say why")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use intake_domain::{ApiKey, Environment};
use intake_test_support::{
    Clinic, Service, ServiceBuilder, TestDatabase, complaint_in, create_request, free_port, patient, request, wait_for,
};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use prost::Message;
use serde_json::Value;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
/// Time for which the program waits for a collector's answer.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(5);

/// A collector that takes everything.
#[derive(Clone)]
struct Collector {
    endpoint: String,
    /// As they came.
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    fn start() -> Self {
        let bodies = Arc::<Mutex<Vec<_>>>::default();
        let taken = Arc::clone(&bodies);
        let endpoint = serve(move |head, body, stream| {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
            assert!(head.to_lowercase().contains("content-type: application/x-protobuf\r\n"), "{head}");
            taken.lock().unwrap().push(body);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        });
        Self { endpoint, bodies }
    }

    fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        let bodies = self.bodies.lock().unwrap();
        bodies.iter().map(|body| ExportTraceServiceRequest::decode(body.as_slice()).unwrap()).collect()
    }

    /// The spans of a trace, as soon as there are this many.
    fn spans(&self, trace: &str, count: usize) -> Vec<Span> {
        let mut spans = Vec::new();
        wait_for("the spans", || {
            let resources = self.requests().into_iter().flat_map(|request| request.resource_spans);
            let all = resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans);
            spans = all.filter(|span| hex(&span.trace_id) == trace).collect();
            spans.len() >= count
        });
        assert_eq!(spans.len(), count, "{spans:#?}");
        spans
    }
}

/// Serves HTTP on a port of its own: `answer` gets each head and body.
fn serve(answer: impl Fn(&str, Vec<u8>, &mut TcpStream) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || serve_connection(stream, answer));
        }
    });
    endpoint
}

fn serve_connection(mut stream: TcpStream, answer: impl Fn(&str, Vec<u8>, &mut TcpStream)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            match reader.read_line(&mut head) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        let length = head.to_lowercase().split_once("content-length: ").unwrap().1.split('\r').next().unwrap().parse();
        let mut body = vec![0; length.unwrap()];
        reader.read_exact(&mut body).unwrap();
        answer(&head, body, &mut stream);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Attributes in the order of their names.
fn attributes(attributes: &[KeyValue]) -> Vec<(String, String)> {
    let text = |value: &KeyValue| match value.value.as_ref().unwrap().value.as_ref().unwrap() {
        any_value::Value::StringValue(text) => text.clone(),
        any_value::Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let mut all: Vec<_> = attributes.iter().map(|one| (one.key.clone(), text(one))).collect();
    all.sort();
    all
}

struct App {
    service: Service,
    clinic: Clinic,
    key: ApiKey,
    database: TestDatabase,
}

impl App {
    fn start(endpoint: &str, settings: impl FnOnce(ServiceBuilder) -> ServiceBuilder) -> Self {
        let database = TestDatabase::new();
        let builder = program(endpoint).database(&database);
        let service = settings(builder).start();
        let clinic = Clinic::open(&database.service, Environment::Development);
        let key = clinic.key().1;
        Self { service, clinic, key, database }
    }

    #[track_caller]
    fn create(&self, headers: &[(&str, &str)]) {
        let create = create_request(&self.key, headers, patient().to_string().as_bytes());
        assert_eq!(self.service.client().send(&create).status, 201);
    }

    fn dropped_spans(&self) -> u64 {
        let metrics = self.service.probe("/metrics").text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("intake_spans_dropped_total "));
        line.unwrap().parse().unwrap()
    }
}

fn program(endpoint: &str) -> ServiceBuilder {
    let program = ServiceBuilder::new(env!("CARGO_BIN_EXE_intake"));
    let program = program.setting("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).setting("INTAKE_RATE_LIMIT", "off");
    program.setting("INTAKE_LOG", "info,intake::requests=info")
}

/// The log's line of a request, as soon as it is there: the first one whose member has this value.
fn line_with(service: &Service, member: &str, value: &str) -> Value {
    let mut found = None;
    wait_for("the line", || {
        let output = service.output();
        let mut all = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        found = all.find(|line| line[member] == value);
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn a_create_is_a_span_of_its_callers_trace_with_its_wait_and_its_statement() {
    let collector = Collector::start();
    let app = App::start(&collector.endpoint, |builder| builder.setting("OTEL_SERVICE_NAME", "front-door"));
    // The key's holder is looked up once, and that is a statement, too.
    app.create(&[]);
    app.create(&[("traceparent", &format!("00-{TRACE}-{CALLER}-01"))]);
    let spans = collector.spans(TRACE, 3);
    let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let request = named("POST /api/v1/patients");
    assert_eq!((request.kind(), hex(&request.parent_span_id)), (SpanKind::Server, CALLER.to_owned()));
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = [
        pair("http.request.method", "POST"),
        pair("http.response.status_code", "201"),
        pair("http.route", "/api/v1/patients"),
    ];
    assert_eq!(attributes(&request.attributes), expected);
    assert_eq!(request.status.as_ref().unwrap().code(), StatusCode::Unset);
    let (wait, statement) = (named("wait"), named("statement"));
    assert_eq!((wait.kind(), statement.kind()), (SpanKind::Internal, SpanKind::Client));
    assert_eq!(attributes(&wait.attributes), []);
    assert_eq!(
        attributes(&statement.attributes),
        [pair("db.system.name", "postgresql"), pair("intake.batch.rows", "1")]
    );
    for child in [wait, statement] {
        assert_eq!(child.parent_span_id, request.span_id);
        assert!(child.start_time_unix_nano >= request.start_time_unix_nano, "{child:?} {request:?}");
        assert!(child.end_time_unix_nano >= child.start_time_unix_nano, "{child:?}");
        assert!(child.end_time_unix_nano <= request.end_time_unix_nano, "{child:?} {request:?}");
    }
    let line = line_with(&app.service, "trace_id", TRACE);
    assert_eq!(line["span_id"], Value::String(hex(&request.span_id)));
    let resource = collector.requests().remove(0).resource_spans.remove(0).resource.unwrap();
    let resource = attributes(&resource.attributes);
    assert!(resource.contains(&pair("service.name", "front-door")), "{resource:?}");
    assert!(resource.contains(&pair("service.version", env!("CARGO_PKG_VERSION"))), "{resource:?}");
}

#[test]
fn spans_name_no_patient_key_organisation_address_or_token() {
    let collector = Collector::start();
    let app = App::start(&collector.endpoint, |builder| builder);
    app.create(&[("Idempotency-Key", "booking-77")]);
    let _ = app.service.client().send(&request("GET", "/invitations/Canary-Token?q=Canary-Query", &[], b""));
    let line = line_with(&app.service, "route", "/invitations/{token}");
    let trace = line["trace_id"].as_str().unwrap();
    let page = collector.spans(trace, 1).remove(0);
    assert_eq!(page.name, "GET /invitations/{token}");
    let create = line_with(&app.service, "route", "/api/v1/patients");
    // The request, and for the key's holder and the patient a wait and a statement each.
    collector.spans(create["trace_id"].as_str().unwrap(), 5);
    let all: Vec<u8> = collector.bodies.lock().unwrap().concat();
    let all = String::from_utf8_lossy(&all).into_owned();
    let secrets = [
        "Ada",
        "Lovelace",
        "61412345678",
        "1985",
        "booking-77",
        "Canary",
        "127.0.0.1",
        app.key.expose(),
        app.database.name(),
        &app.clinic.organisation.to_string(),
        create["key_id"].as_str().unwrap(),
    ];
    for secret in secrets {
        assert!(!all.contains(secret), "{secret}");
    }
    assert!(all.contains("http.route"), "{all}");
}

#[test]
fn a_failure_is_marked_and_what_the_caller_does_not_record_is_left_out() {
    let collector = Collector::start();
    let app = App::start(&collector.endpoint, |builder| builder.setting("INTAKE_DEADLINE", "1s"));
    app.create(&[("traceparent", &format!("00-{TRACE}-{CALLER}-00"))]);
    let mut holder = app.database.connect();
    holder.batch_execute("BEGIN; LOCK TABLE patients").unwrap();
    let trace = TRACE.replace("4bf9", "0000");
    let traceparent = format!("00-{trace}-{CALLER}-01");
    let create = create_request(&app.key, &[("traceparent", &traceparent)], patient().to_string().as_bytes());
    assert_eq!(app.service.client().send(&create).status, 503);
    let mut failed = None;
    wait_for("the span", || {
        let resources = collector.requests().into_iter().flat_map(|request| request.resource_spans);
        let all = resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans);
        let spans: Vec<_> = all.collect();
        assert!(spans.iter().all(|span| hex(&span.trace_id) != TRACE), "{spans:?}");
        failed = spans.into_iter().find(|span| span.kind() == SpanKind::Server && hex(&span.trace_id) == trace);
        failed.is_some()
    });
    assert_eq!(failed.unwrap().status.unwrap().code(), StatusCode::Error);
}

/// The endpoints of collectors that take nothing, each in a way of its own.
fn faulty_collectors() -> [(&'static str, String); 4] {
    [
        ("away", format!("http://127.0.0.1:{}", free_port())),
        ("hangs", serve(|_, _, _| std::thread::sleep(Duration::from_secs(3_600)))),
        (
            "trickles",
            serve(|_, _, stream| {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
                while stream.write_all(b"x").is_ok() {
                    std::thread::sleep(Duration::from_millis(100));
                }
            }),
        ),
        (
            "refuses",
            serve(|_, _, stream| {
                let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
            }),
        ),
    ]
}

#[test]
fn a_collector_that_fails_delays_neither_requests_nor_the_end() {
    for (fault, endpoint) in faulty_collectors() {
        let mut app = App::start(&endpoint, |builder| builder);
        app.create(&[]);
        // The first spans are sent, and the collector fails, while others are served.
        wait_for(fault, || {
            let asked = Instant::now();
            app.create(&[]);
            let took = asked.elapsed();
            assert!(took < COLLECTOR_TIMEOUT, "{fault}: {took:?}");
            app.dropped_spans() > 0
        });
        assert!(app.service.output().contains("the collector takes no traces"), "{fault}: {}", app.service.output());
        // Some spans wait or are being sent.
        app.create(&[]);
        std::thread::sleep(Duration::from_millis(1_500));
        let asked = Instant::now();
        assert!(app.service.stop().success(), "{fault}");
        assert!(asked.elapsed() < COLLECTOR_TIMEOUT / 2, "{fault}: {:?}", asked.elapsed());
    }
}

#[test]
fn the_last_spans_are_exported_before_the_end() {
    let collector = Collector::start();
    let mut app = App::start(&collector.endpoint, |builder| builder);
    app.create(&[]);
    let first = line_with(&app.service, "route", "/api/v1/patients");
    collector.spans(first["trace_id"].as_str().unwrap(), 5);
    app.create(&[("traceparent", &format!("00-{TRACE}-{CALLER}-01"))]);
    assert!(app.service.stop().success());
    collector.spans(TRACE, 3);
}

#[test]
fn without_a_collector_nothing_is_exported() {
    for (variable, value) in [("OTEL_EXPORTER_OTLP_ENDPOINT", ""), ("OTEL_SDK_DISABLED", "true")] {
        let collector = Collector::start();
        let app = App::start(&collector.endpoint, |builder| builder.setting(variable, value));
        app.create(&[]);
        assert!(line_with(&app.service, "route", "/api/v1/patients").get("trace_id").is_none(), "{variable}");
        assert!(!app.service.output().contains("traces are exported"), "{variable}");
    }
}

#[test]
fn an_invalid_address_stops_the_start() {
    let output = program("http://[collector").run();
    assert_eq!(output.status.code(), Some(1));
    let complaint = complaint_in(&output.stderr);
    assert!(complaint.starts_with("intake: OTEL_EXPORTER_OTLP_ENDPOINT"), "{complaint}");
}
