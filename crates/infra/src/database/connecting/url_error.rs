//! Why a text is not the address of a database.

/// Reason why a text is not the address of a database that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    /// Neither of libpq's forms.
    #[error("must be like postgres://user:password@host/database")]
    Form,
    /// libpq would take a part of the password for the host, and put it into its error.
    #[error("has a character in its password that must be escaped, such as %40 for @, %2F for / or %25 for %")]
    Unescaped,
    /// The database is across a network, and this build cannot encrypt.
    #[error("leads to another machine, and this build cannot encrypt the connection: build with --features tls")]
    NeedsTls,
    /// The database is across a network, and the address allows a connection that is not encrypted.
    #[error(
        "leads to another machine, and sslmode={0} allows a connection that is not encrypted: \
         set sslmode=verify-full, and sslrootcert to a file with the certificate of its authority"
    )]
    InClear(String),
    /// Parameters of an address take precedence over a service file of libpq's.
    #[error(
        "names a service of libpq's, which may lead to another machine: \
         set sslmode in the address itself, as in service=intake sslmode=verify-full"
    )]
    ServiceWithoutMode,
    /// The file cannot be read. Says why in the system's words, without the path.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// The file is longer than any address.
    #[error("is too large to be the address of a database")]
    TooLong,
    /// The file is not text.
    #[error("is not UTF-8")]
    NotUtf8,
    /// The file holds nothing.
    #[error("is empty")]
    Empty,
    /// The file holds more than an address.
    #[error("has more than one line")]
    SeveralLines,
}
