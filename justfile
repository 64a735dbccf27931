# Lists the recipes
default:
    @just --list

# Starts the service with an embedded database
run *arguments:
    cargo run -- {{ arguments }}

# Runs every test
test *arguments:
    cargo test {{ arguments }}

# Measures how long the tests in the table of docs/CONTRIBUTING.md take once they are built: `just durations domain` measures only commands with this word
durations word="":
    #!/usr/bin/env bash
    set -euo pipefail
    grep '^| ' docs/CONTRIBUTING.md | grep --only-matching '`cargo test -[^`]*`' | tr --delete '`' | sort --unique | grep --invert-match NAME_ \
        | grep -e '{{ word }}' | while read -r command; do
        ${command/cargo test/cargo test --no-run} &> /dev/null < /dev/null
        SECONDS=0
        $command &> /dev/null < /dev/null || echo "failed: $command"
        echo "$SECONDS seconds: $command"
    done

# Checks format and lints
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- --deny warnings
    cargo clippy --package intake-http --all-targets --features bench --locked -- --deny warnings

# Formats the code
fmt:
    cargo fmt --all

# Checks the form of commit messages from here on
hooks:
    git config core.hooksPath .ci/hooks

# Measures against pgbench in one run, about 12 minutes: `just bench --rounds 1 --rows 0` is quick, `just bench --crowd` measures overload, stalled clients and noisy neighbours, `just bench --neighbours` the last of these, `just bench --beside PROGRAM` another build in turns, `just bench --wal` what PostgreSQL writes to its log, `just bench --sizes` the figures of docs/operations/sizes.md, in 5 minutes. Table and chart: target/bench
bench *arguments:
    cargo build --release --locked --package intake --package intake-bench
    target/release/intake-bench {{ arguments }}

# Counts what a create needs (instructions, system calls, memory, threads that are woken; valgrind, perf or strace are named where they are missing), and measures what is computed for it
bench-parts *arguments:
    cargo build --release --locked --package intake --package intake-bench
    target/release/intake-bench --parts {{ arguments }}
    cargo bench --locked --package intake-http --features bench --bench request

# Pulls every plug, one by one and then all at once, and counts what was lost, about 25 minutes: `just torture --help` tells how to shorten it
torture *arguments:
    cargo build --release --locked --package intake --package intake-import --package intake-torture
    target/release/intake-torture {{ arguments }}

# Feeds one of the targets in crates/fuzz/targets with random inputs for ten minutes; `just fuzz body 600 none` runs several times as many, without the address sanitiser (needs cargo-fuzz)
fuzz target seconds="600" sanitizer="address" *more:
    @# Leaks are not looked for: actix's router keeps the names of its routes on purpose.
    mkdir -p crates/fuzz/seeds/{{ target }} crates/fuzz/corpus/{{ target }}
    ASAN_OPTIONS=detect_leaks=0 RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir crates/fuzz --target-dir target/fuzz --sanitizer {{ sanitizer }} {{ target }} crates/fuzz/corpus/{{ target }} crates/fuzz/seeds/{{ target }} -- -max_total_time={{ seconds }} {{ more }}

# Builds the Debian package in target/debian, with TLS to the database, and the list of all crates inside the programs (needs cargo-deb and cargo-auditable)
package:
    rm --force target/debian/intake_*.deb
    cargo test --locked --package intake --package intake-import --bins -- man_pages_and_completions
    cargo auditable build --release --locked --package intake --features tls --package intake-import
    cargo deb --no-build --package intake

# Builds everything of a release in target/release-VERSION, the same bytes each time (needs cargo-deb, cargo-auditable and libssl-dev): `just release 0.2.0`
release version *draft:
    crates/server/packaging/release {{ version }} {{ draft }}

# Runs the commands of docs/operations/install.md in a fresh Debian, with the package and with the archive, about 3 minutes (needs root, mmdebstrap and systemd-container)
package-check: package
    crates/server/packaging/check target/debian/intake_*.deb

# Generates clients from the OpenAPI document for each language that is installed, creates a patient with each, and asks linters, about 6 minutes (needs a JDK, Node.js and a network)
generators:
    cargo test --package intake --test integrators --locked -- --ignored --test-threads=2

# Runs every test but those of `just generators` and of Citus, each page in Firefox and without scripts, too, most of an hour
test-all:
    INTAKE_TEST_NIGHTLY=yes cargo test --locked
    cargo test --package intake-domain --test it --locked -- --ignored
    cargo test --package intake --test blackbox --locked -- --ignored --test-threads=1 deployment load::floods creates_elsewhere own_day not_made_later

# Changes the code in thousands of ways and lists the changes that no test notices, hours (needs cargo-mutants)
mutants:
    cargo mutants --package intake-domain --package intake-http
    cargo mutants --package intake-infra --file 'crates/infra/src/{keys,patients,feed}/**'

# Runs each fuzz target 10⁸ times, at most ten hours each (needs cargo-fuzz)
fuzz-all executions="100000000":
    for target in $(basename --suffix .rs crates/fuzz/targets/*.rs); do just fuzz "$target" 36000 none -runs={{ executions }} || exit 1; done

# Pulls every plug for three hours; the table names the seed
torture-all:
    just torture --mixed-minutes 155

# Delivers 100,000 patients to a webhook and a FHIR server while everything fails, and prints what was lost and how long it took: `just deliver-trial 2000` is quick
deliver-trial patients="100000":
    INTAKE_TEST_PATIENTS={{ patients }} cargo test --package intake --test blackbox --locked -- --ignored --nocapture deliver::trial

# Runs what is too long for each change, most of a night: all parts, or those that are named. A part that fails does not keep the others from running
nightly *parts="advisories test-all cluster-tests generators package-check deliver-trial fuzz-all mutants torture-all":
    #!/usr/bin/env bash
    set -uo pipefail
    failed=()
    for part in {{ parts }}; do
        printf '\n== %s\n' "$part"
        just "$part" || failed+=("$part")
    done
    if [ "${#failed[@]}" -gt 0 ]; then echo "failed: ${failed[*]}"; exit 1; fi

# Runs the tests that need Citus, on the cluster that INTAKE_TEST_CITUS_URL names or on three PostgreSQL of its own, with Citus built from CITUS_SOURCE, a clone of github.com/citusdata/citus, about 20 minutes: `just cluster-tests nodes::` runs some
cluster-tests *names:
    .ci/cluster-tests {{ names }}

# Checks that this release and the one before it serve together, and that the one before can come back: `just upgrade-check /path/to/its/intake`
upgrade-check program:
    INTAKE_OLDER_PROGRAM={{ program }} cargo test --test blackbox -- serve_together

# Compares all crates with the database of advisories, and checks bans, licences and sources (needs cargo-deny and a network)
advisories:
    cargo deny --locked --all-features check
    cargo deny --locked --manifest-path crates/fuzz/Cargo.toml --config deny.toml check advisories

# Exactly what CI runs
ci:
    bash .ci/run
