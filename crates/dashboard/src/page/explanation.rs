//! What the pages of errors say, in one place to read through: what happened, then what to do.

/// A title and a text.
pub(super) type Explanation = (&'static str, &'static str);

pub(super) const SIGN_IN_FIRST: Explanation = ("Sign in", "Sign in first.");
pub(super) const CHOOSE_FIRST: Explanation = ("Choose an organisation", "Choose an organisation first.");
pub(super) const SECOND_FACTOR_FIRST: Explanation = ("Turn on two-step sign-in", "Your organisation requires it.");
pub(super) const CONFIRM_FIRST: Explanation = ("Confirm it's you", "Confirm who you are first.");
pub(super) const ADMINISTRATORS_ONLY: Explanation = (
    "For administrators only",
    "Only administrators can see this page. Ask an administrator at your organisation if you need access.",
);
pub(super) const ADMINISTRATORS_AND_AUDITORS_ONLY: Explanation = (
    "For administrators only",
    "Only administrators and auditors can see this page. Ask an administrator at your organisation if you \
    need access.",
);
pub(super) const AUDITORS_ONLY_LOOK: Explanation = (
    "Auditors can't change this",
    "As an auditor you can see API keys, members and activity, and change your own account. Nothing was \
    changed. Ask an administrator at your organisation if you need access.",
);
pub(super) const NOT_FOUND: Explanation = ("Page not found", "We couldn't find that page.");
pub(super) const WRONG_METHOD: Explanation = ("This page can't be opened that way", "Open it from the menu again.");
pub(super) const CROSS_SITE: Explanation =
    ("Request blocked", "We blocked this change because another website requested it.");
pub(super) const STALE_FORM: Explanation = (
    "This form is out of date",
    "Nothing was changed. You signed in or out, confirmed who you are, or switched organisation after you opened this page. Open the page again and repeat your change.",
);
pub(super) const BAD_FORM: Explanation =
    ("Something was wrong with that form", "Nothing was changed. Open the page again.");
pub(super) const BAD_ADDRESS: Explanation = (
    "Something is wrong with this address",
    "It holds characters that can't be read. Go to the page again from the menu.",
);
pub(super) const NO_INVITATION: Explanation = (
    "This invitation no longer works",
    "It was used or withdrawn, it has expired, or the link is incomplete. Ask the person who sent it for another one.",
);
pub(super) const NO_PASSWORD_RESET: Explanation = (
    "This reset link no longer works",
    "It was used or replaced, it has expired, or the link is incomplete. Ask the person who sent it for another one.",
);
pub(super) const NO_EMAIL_CHANGE: Explanation = (
    "This link no longer works",
    "It was used or replaced, it has expired, or the link is incomplete. Change your email again.",
);
pub(super) const PASSWORDS_OFF: Explanation = (
    "Passwords are turned off",
    "Everyone signs in by single sign-on here, not with a password or a passkey alone. Nothing was changed.",
);
pub(super) const NO_OTHER_EMAIL: Explanation = (
    "Your email can't be changed here",
    "This service sends no emails, so it can't check a new address. Ask an administrator at your organisation \
    to invite the new address, and to remove this account.",
);
pub(super) const ORGANISATION_SUSPENDED: Explanation = (
    "Your organisation is suspended",
    "All of its keys are refused, and no key can be created, until the service operator resumes it. \
    Nothing is lost. Ask the service operator why.",
);
pub(super) const KEY_TOO_LONG: Explanation =
    ("The key must expire sooner", "Your organisation limits how long keys work. Go back, and choose an earlier date.");
pub(super) const TOO_MANY_KEYS: Explanation = (
    "Too many keys",
    "Your organisation has reached its limit of active keys. Revoke one that is no longer used first.",
);
pub(super) const ALREADY_QUEUED: Explanation =
    ("One moment", "We're still checking your last attempt. Go back, and try again in a moment.");
pub(super) const TOO_MANY_KEYS_TODAY: Explanation =
    ("Too many keys", "Your organisation has reached today's limit of new keys. Try again tomorrow.");
pub(super) const FULL: Explanation =
    ("One moment", "The service is busy or cannot reach its database. Try again in a few seconds.");
pub(super) const LOCKED: Explanation = (
    "Not done",
    "Something else holds this in the database, so nothing was changed. If it lasts, ask the service operator.",
);
pub(super) const UNEXPECTED: Explanation = ("Something went wrong", "An unexpected error occurred. Try again.");
