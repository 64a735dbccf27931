//! The pages of the dashboard.

mod activity;
mod docs_page;
mod ending_keys;
mod fast_pages;
mod first_steps;
mod guard;
mod in_a_browser;
mod key_age;
mod key_clients;
mod key_page;
mod layout;
pub(crate) mod mails;
mod moments;
mod notices;
mod odd_values;
pub(crate) mod pages;
mod samples;
mod typed_input;
mod unused_keys;
mod unusual_keys;
mod way_back;
mod ways_in;
