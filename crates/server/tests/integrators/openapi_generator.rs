//! Clients that openapi-generator makes, the generator that most integrators have: each is compiled, checks a patient,
//! creates one, and reads what is wrong with another as values of its types. `just generators` runs them.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::fixtures::{Integration, npm_program, work_folder};
use crate::generated_clients::assert_creates_one;
use crate::tools::{self, run};

/// A folder with the program that uses a client, and the client itself in a folder of its own.
fn generate(
    app: &Integration,
    within: &Path,
    language: &str,
    into: &str,
    program: &str,
    options: &str,
) -> Option<TempDir> {
    let generators = tools::generators()?;
    let folder = work_folder(within, &[&format!("clients/{program}"), "tsconfig.json"]);
    app.save_document(folder.path());
    let mut generator = Command::new(generators.join("bin/openapi-generator-cli"));
    generator.args(["generate", "-i", "openapi.json", "-g", language, "-o", into]);
    if !options.is_empty() {
        generator.arg(options);
    }
    run(generator.current_dir(&folder));
    Some(folder)
}

#[test]
#[ignore = "just generators"]
fn python_creates_a_patient() {
    let Some(generators) = tools::generators() else { return };
    let app = Integration::start();
    let program = "with_openapi_generator.py";
    let Some(folder) = generate(&app, generators, "python", ".", program, "") else { return };
    assert_creates_one(&app, app.command(generators.join("bin/python")).arg(program), folder.path());
}

#[test]
#[ignore = "just generators"]
fn go_creates_a_patient() {
    let (Some(generators), Some(())) = (tools::generators(), tools::language("go")) else { return };
    let app = Integration::start();
    let program = "with_openapi_generator.go";
    let Some(folder) = generate(&app, generators, "go", ".", program, "--package-name=intake") else { return };
    fs::create_dir(folder.path().join("use")).unwrap();
    fs::rename(folder.path().join(program), folder.path().join("use/main.go")).unwrap();
    run(Command::new("go").args(["vet", ".", "./use"]).env("GOPROXY", "off").current_dir(&folder));
    assert_creates_one(&app, app.command("go").args(["run", "./use"]).env("GOPROXY", "off"), folder.path());
}

#[test]
#[ignore = "just generators"]
fn ruby_creates_a_patient() {
    let (Some(generators), Some(())) = (tools::generators(), tools::language("ruby")) else { return };
    let app = Integration::start();
    let program = "with_openapi_generator.rb";
    let Some(folder) = generate(&app, generators, "ruby", "openapi-generator", program, "") else { return };
    assert_creates_one(&app, app.command("ruby").arg(program), folder.path());
}

#[test]
#[ignore = "just generators"]
fn php_creates_a_patient() {
    let (Some(generators), Some(_)) = (tools::generators(), tools::php()) else { return };
    let app = Integration::start();
    let program = "with_openapi_generator.php";
    let Some(folder) = generate(&app, generators, "php", "openapi-generator", program, "") else { return };
    assert_creates_one(&app, app.command("php").arg(program), folder.path());
}

#[test]
#[ignore = "just generators"]
fn java_creates_a_patient() {
    let (Some(generators), Some(annotations)) = (tools::generators(), tools::java_annotations()) else { return };
    let app = Integration::start();
    let (program, options) =
        ("WithOpenapiGenerator.java", "--additional-properties=library=native,openApiNullable=false");
    let Some(folder) = generate(&app, generators, "java", "java", program, options) else { return };
    let authority = app.service.data_dir().join("tls/ca.pem");
    let mut trust = Command::new("keytool");
    trust.args(["-importcert", "-noprompt", "-alias", "intake", "-keystore", "ca.p12", "-storepass", "changeit"]);
    run(trust.arg("-file").arg(authority).current_dir(&folder));
    // The generator itself brings the libraries that its clients need.
    let compile = "javac -nowarn -d classes -cp \"$LIBRARIES\" *.java $(find java/src/main -name '*.java')";
    let libraries = generators.join("lib/python3*/site-packages/openapi_generator_cli/openapi-generator.jar");
    let libraries = run(Command::new("sh").arg("-c").arg(format!("printf %s {}", libraries.display())));
    let libraries = format!("{libraries}:{}", annotations.display());
    run(Command::new("sh").args(["-c", compile]).env("LIBRARIES", &libraries).current_dir(&folder));
    let mut java = app.command("java");
    java.args(["-Djavax.net.ssl.trustStore=ca.p12", "-Djavax.net.ssl.trustStorePassword=changeit", "-cp"]);
    assert_creates_one(&app, java.arg(format!("classes:{libraries}")).arg("WithOpenapiGenerator"), folder.path());
}

#[test]
#[ignore = "just generators"]
fn rust_creates_a_patient() {
    let Some(generators) = tools::generators() else { return };
    let app = Integration::start();
    let program = "with_openapi_generator.rs";
    let options = "--additional-properties=supportAsync=false";
    let Some(folder) = generate(&app, generators, "rust", ".", program, options) else { return };
    fs::create_dir(folder.path().join("examples")).unwrap();
    fs::rename(folder.path().join(program), folder.path().join("examples").join(program)).unwrap();
    let manifest = folder.path().join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}\n[workspace]\n")).unwrap();
    // Kept, so that the libraries are compiled once.
    let target = generators.with_file_name("rust");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--example", "with_openapi_generator", "--target-dir"]).arg(&target);
    run(cargo.env("CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS", "fallback").current_dir(&folder));
    let mut client = app.command(target.join("debug/examples/with_openapi_generator"));
    assert_creates_one(&app, &mut client, folder.path());
}

#[test]
#[ignore = "just generators"]
fn typescript_fetch_creates_a_patient() {
    assert_typescript("typescript-fetch", "with_typescript_fetch");
}

#[test]
#[ignore = "just generators"]
fn typescript_axios_creates_a_patient() {
    assert_typescript("typescript-axios", "with_typescript_axios");
}

fn assert_typescript(language: &str, program: &str) {
    let Some(node) = tools::node() else { return };
    let app = Integration::start();
    let options = "--additional-properties=importFileExtension=.js";
    let Some(folder) = generate(&app, node, language, language, &format!("{program}.ts"), options) else { return };
    fs::write(folder.path().join("package.json"), "{\"type\": \"module\"}").unwrap();
    run(Command::new(npm_program(node, "tsc")).args(["--project", ".", "--noEmitOnError"]).current_dir(&folder));
    assert_creates_one(&app, app.command("node").arg(format!("{program}.js")), folder.path());
}
