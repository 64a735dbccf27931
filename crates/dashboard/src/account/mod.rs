//! Signing in and out, and Account.

pub(crate) mod choose_organisation;
pub(crate) mod code_field;
pub(crate) mod confirm;
pub(crate) mod email;
pub(crate) mod forgotten_password;
pub(crate) mod name;
pub(crate) mod page;
pub(crate) mod passkey_prompt;
pub(crate) mod passkeys;
pub(crate) mod password;
pub(crate) mod provider;
pub(crate) mod qr_code;
pub(crate) mod reset_password;
pub(crate) mod routes;
pub(crate) mod second_factor;
pub(crate) mod sessions;
pub(crate) mod sign_in;
pub(crate) mod sign_in_passkey;
pub(crate) mod sign_in_provider;

/// The page of the member's own account.
pub(crate) const ACCOUNT: &str = "/settings/account";
