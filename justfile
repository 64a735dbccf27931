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

# Formats the code
fmt:
    cargo fmt --all

# Exactly what CI runs
ci:
    bash .ci/run
