//! Browsers of members: each is behind a proxy, in a network of its own.

use std::time::Instant;

use intake_test_support::{Response, request};
use serde_json::Value;

use crate::operations::Operations;
use crate::random::Random;

pub(crate) const PASSWORD: &str = "correct horse battery staple";
/// The page that every member has.
pub(crate) const ACCOUNT: &str = "/settings/account";

/// A browser of one person.
pub(crate) struct Browser<'a> {
    pub(crate) operations: &'a Operations<'a>,
    pub(crate) organisation: String,
    pub(crate) address: String,
    pub(crate) email: String,
}

/// In all of these, none means that a fault kept something from being done, or that its outcome is not known.
impl<'a> Browser<'a> {
    /// The browser of a person who may join this organisation.
    pub(crate) fn new(operations: &'a Operations<'a>, organisation: String, random: &mut Random) -> Self {
        let [.., high, middle, low] = random.next().to_be_bytes();
        let address = format!("10.{high}.{middle}.{low}");
        let email = format!("member-{:x}@example.com", random.next());
        Self { operations, organisation, address, email }
    }

    /// Joins with the password, as an administrator. Returns the session.
    pub(crate) fn join(&self) -> Option<String> {
        let invitation = self.link("invite")?;
        // No two members of an organisation have the same name.
        let name = self.email.split('@').next()?;
        cookie(&self.post(0, &invitation, "", &format!("name={name}&password={}", typed(PASSWORD)))?)
    }

    /// Confirms by the password. Returns the session as it is from then on.
    pub(crate) fn confirm(&self, cookie: &str) -> Option<String> {
        self::cookie(&self.own_page(cookie, "/settings/confirm", &format!("password={}", typed(PASSWORD)))?)
    }

    /// The token of a session's forms.
    pub(crate) fn form_token(&self, cookie: &str) -> Option<String> {
        between(&self.get(0, ACCOUNT, cookie)?.text(), "name=\"form_token\" value=\"", "\"")
    }

    /// Sends a form of the member whose session this is.
    pub(crate) fn own_page(&self, cookie: &str, path: &str, form: &str) -> Option<Response> {
        let form_token = self.form_token(cookie)?;
        self.post(0, path, cookie, &format!("form_token={form_token}&{form}"))
    }

    /// The path of a link that an operator makes for the member.
    pub(crate) fn link(&self, what: &str) -> Option<String> {
        let arguments = ["member", what, "--json", "--organisation", &self.organisation, "--email", &self.email];
        let made: Value = serde_json::from_str(&self.operations.command(&arguments).ok()?).ok()?;
        let (_, rest) = made.get("link")?.as_str()?.split_once("://")?;
        rest.find('/').and_then(|path| rest.get(path..)).map(str::to_owned)
    }

    pub(crate) fn sign_in(&self, instance: usize, password: &str) -> Option<Response> {
        let form = format!("email={}&password={}", self.email.replace('@', "%40"), typed(password));
        self.post(instance, "/sign-in", "", &form)
    }

    pub(crate) fn get(&self, instance: usize, path: &str, cookie: &str) -> Option<Response> {
        self.send(instance, "GET", path, &[("Cookie", cookie), ("Accept", "text/html")], "")
    }

    pub(crate) fn post(&self, instance: usize, path: &str, cookie: &str, form: &str) -> Option<Response> {
        let headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Cookie", cookie)];
        self.send(instance, "POST", path, &headers, form)
    }

    /// None: no answer came, or one that says nothing.
    fn send(
        &self,
        instance: usize,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Option<Response> {
        let headers = [headers, &[("X-Forwarded-For", self.address.as_str())]].concat();
        let bytes = request(method, path, &headers, body.as_bytes());
        let asked = Instant::now();
        let mut connection = self.operations.bed.client(instance).ok()?.try_connect().ok()?;
        let answer = connection.try_write(&bytes).and_then(|()| connection.try_read(true)).ok()?;
        // What needs a commit is never of the past: a session begins with one.
        let says_nothing = answer.status >= 500 || answer.status != 303 && self.operations.bed.may_be_stale(asked);
        (!says_nothing).then_some(answer)
    }
}

/// The text between two others.
pub(crate) fn between(page: &str, before: &str, after: &str) -> Option<String> {
    Some(page.split_once(before)?.1.split(after).next()?.to_owned())
}

pub(crate) fn typed(password: &str) -> String {
    password.replace(' ', "+")
}

/// The session that an answer begins.
pub(crate) fn cookie(answer: &Response) -> Option<String> {
    let cookie = answer.header("set-cookie").filter(|_| answer.status == 303)?.split(';').next()?;
    Some(cookie.to_owned()).filter(|cookie| !cookie.ends_with('='))
}
