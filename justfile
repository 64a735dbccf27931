# Lists the recipes
default:
    @just --list

# Starts the service with an embedded database
run *arguments:
    cargo run -- {{ arguments }}

# Runs every test
test *arguments:
    cargo test {{ arguments }}

# Checks format and lints
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- --deny warnings
    cargo clippy --package intake-http --all-targets --features bench --locked -- --deny warnings

# Formats the code
fmt:
    cargo fmt --all

# Measures against pgbench in one run, about 12 minutes: `just bench --rounds 1 --rows 0` is quick, `just bench --crowd` measures overload, stalled clients and noisy neighbours, `just bench --wal` what PostgreSQL writes to its log. Table and chart: target/bench
bench *arguments:
    cargo build --release --locked --package intake --package intake-bench
    target/release/intake-bench {{ arguments }}

# Measures what the service computes for a request, apart from network and database
bench-parts *arguments:
    cargo bench --locked --package intake-http --features bench --bench request -- {{ arguments }}

# Pulls every plug, one by one and then all at once, and counts what was lost, about 25 minutes: `just torture --help` tells how to shorten it
torture *arguments:
    cargo build --release --locked --package intake --package intake-torture
    target/release/intake-torture {{ arguments }}

# Feeds one of body, key, forwarded_headers and forms with what nobody thought of, for ten minutes (needs cargo-fuzz)
fuzz target seconds="600":
    @# Leaks are not looked for: actix's router keeps the names of its routes on purpose.
    mkdir -p crates/fuzz/seeds/{{ target }} crates/fuzz/corpus/{{ target }}
    ASAN_OPTIONS=detect_leaks=0 RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir crates/fuzz --target-dir target/fuzz {{ target }} crates/fuzz/corpus/{{ target }} crates/fuzz/seeds/{{ target }} -- -max_total_time={{ seconds }}

# Builds the Debian package in target/debian, with TLS to the database, and the list of all crates inside the programs (needs cargo-deb and cargo-auditable)
package:
    rm --force target/debian/intake_*.deb
    cargo auditable build --release --locked --package intake --features tls --package intake-import
    cargo deb --no-build --package intake

# Installs the package in a fresh Debian, starts the service there, and creates a patient, about 3 minutes (needs root, mmdebstrap and systemd-container)
package-check: package
    crates/server/packaging/check target/debian/intake_*.deb

# Checks that this release and the one before it serve together, and that the one before can come back: `just upgrade-check /path/to/its/intake`
upgrade-check program:
    INTAKE_OLDER_PROGRAM={{ program }} cargo test --test blackbox -- serve_together

# Exactly what CI runs
ci:
    bash .ci/run
