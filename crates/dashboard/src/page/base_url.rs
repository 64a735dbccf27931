//! Where programs find the service, and what they have to trust.

/// The address that browsers and integrations know the service by, without a slash at its end.
pub(crate) struct BaseUrl(pub(crate) String);

/// The file with the certificate authority of a service whose certificate is not public, as a word for a shell.
pub(crate) struct Authority(pub(crate) Option<String>);
