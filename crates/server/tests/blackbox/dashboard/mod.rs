//! The pages of the dashboard.

mod activity;
mod dead_ends;
mod docs_page;
mod ending_keys;
mod fast_pages;
mod first_steps;
mod guard;
mod handover;
mod help;
mod in_a_browser;
mod key_age;
mod key_clients;
mod key_list;
mod key_page;
mod layout;
pub(crate) mod mails;
mod notices;
mod odd_values;
pub(crate) mod pages;
mod quality;
mod redirects;
mod samples;
mod shown_times;
mod stopping_all_keys;
mod typed_input;
mod unused_keys;
mod unusual_keys;
