//! `intake patient` and its arguments.

use clap::{Args, Subcommand};
use intake_domain::{IdempotencyDigest, IdempotencyDigestError, OrganisationId, PatientId};

use crate::settings::arguments::{Brakes, Output, Run, parse_id};

#[derive(Subcommand)]
pub(crate) enum PatientCommand {
    /// Print everything stored about a patient
    Show(PatientArguments),
    /// Erase a patient for good
    Erase {
        #[command(flatten)]
        arguments: PatientArguments,
        /// Repeat an erasure after a restore: the digest of the patient's Idempotency-Key, or `none`, as
        /// `restored --audit` prints it
        #[arg(long, value_name = "DIGEST", value_parser = parse_digest)]
        idempotency_digest: Option<KnownDigest>,
        #[command(flatten)]
        brakes: Brakes,
    },
}

/// Digest of the idempotency key of a patient who may be lost.
#[derive(Clone, Copy)]
pub(crate) struct KnownDigest(pub(crate) Option<IdempotencyDigest>);

fn parse_digest(text: &str) -> Result<KnownDigest, String> {
    let digest = if text == "none" { None } else { Some(text.parse()) };
    digest.transpose().map(KnownDigest).map_err(|error: IdempotencyDigestError| format!("{error}, or none"))
}

#[derive(Args)]
pub(crate) struct PatientArguments {
    /// The patient's organisation
    #[arg(long, value_name = "ID", value_parser = parse_id::<OrganisationId>)]
    pub(crate) organisation: OrganisationId,
    /// The patient
    #[arg(long, value_name = "ID", value_parser = parse_id::<PatientId>)]
    pub(crate) patient: PatientId,
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) output: Output,
}
