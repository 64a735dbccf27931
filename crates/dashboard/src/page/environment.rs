//! The environment that a page belongs to, which every page names, those for strangers and for faults included. It is
//! known to whatever is rendered while a request is answered.

use intake_domain::Environment;
use tokio::task_local;

task_local! {
    static ENVIRONMENT: Environment;
}

/// Answers a request within its environment.
pub(crate) async fn within<T>(environment: Environment, answer: impl Future<Output = T>) -> T {
    ENVIRONMENT.scope(environment, answer).await
}

/// Renders a page before any request.
pub(crate) fn within_now<T>(environment: Environment, render: impl FnOnce() -> T) -> T {
    ENVIRONMENT.sync_scope(environment, render)
}

/// The environment's name, for styles.
pub(crate) fn name() -> &'static str {
    ENVIRONMENT.try_with(|environment| environment.as_str()).unwrap_or_default()
}

/// True where pages for developers may be shown.
pub(crate) fn is_development() -> bool {
    ENVIRONMENT.try_with(|environment| *environment == Environment::Development).unwrap_or_default()
}

/// The environment's name, for people.
pub(crate) fn title() -> &'static str {
    let title = |environment: &Environment| match environment {
        Environment::Development => "Development",
        Environment::Production => "Production",
    };
    ENVIRONMENT.try_with(title).unwrap_or_default()
}
