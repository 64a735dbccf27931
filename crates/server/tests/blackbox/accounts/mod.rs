//! Members: how they join, sign in and change their accounts, and what each may do.

mod account;
mod choosing_passwords;
mod guessed_passwords;
mod invitations;
mod memberships;
pub(crate) mod passkeys;
mod passwords_off;
mod permissions;
mod planted_accounts;
mod refused_actions;
mod roles;
mod sessions;
mod sign_in_page;
mod sign_in_races;
pub(crate) mod single_sign_on;
mod two_step_sign_in;
