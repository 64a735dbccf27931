//! What a test bed is to be like.

use std::path::Path;
use std::time::Duration;

use intake_domain::Environment;

/// Settings of a test bed.
pub(crate) struct TestBedPlan<'a> {
    pub(crate) program: &'a Path,
    /// The folder in which the bed's own folder is made.
    pub(crate) folder: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) seed: u64,
    pub(crate) environment: Environment,
    /// The clock of the database runs steadily.
    pub(crate) keeps_time: bool,
    /// Time for which requests wait.
    pub(crate) deadline: Duration,
    /// Additional settings of the services.
    pub(crate) settings: &'a [(&'a str, &'a str)],
}
