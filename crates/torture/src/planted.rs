//! Controls: a change of a member has no effect, or an account is that of another person. The operations on members
//! must notice it.

use std::sync::atomic::AtomicBool;

use anyhow::Context;
use diesel::connection::SimpleConnection;

use crate::audit::Findings;
use crate::browser::Browser;
use crate::journal::Journal;
use crate::members::{Change, Team};
use crate::operations::{Operations, text};
use crate::postgres_server::PostgresServer;
use crate::random::Random;
use crate::run::Run;
use crate::test_bed::TestBed;
use crate::traffic::Traffic;

/// The random stream of what is done.
const STREAM: u64 = 14_500;

/// A fault of the database.
struct Fault {
    change: Change,
    title: &'static str,
    /// Event of the trigger, and its body.
    trigger: (&'static str, &'static str),
}

const FAULTS: [Fault; 4] = [
    Fault {
        change: Change::Demoted,
        title: "a member keeps a role that was taken away",
        trigger: ("UPDATE ON memberships", "RETURN OLD;"),
    },
    Fault {
        change: Change::SignedOut,
        title: "a session that was ended continues",
        trigger: ("DELETE ON sessions", "RETURN NULL;"),
    },
    Fault {
        change: Change::SecondFactor,
        title: "a second factor is forgotten",
        trigger: ("UPDATE ON members", "NEW.totp_secret := NULL; NEW.totp_used_step := NULL; RETURN NEW;"),
    },
    Fault {
        change: Change::SingleSignOn,
        title: "an account is linked to another person",
        trigger: (
            "INSERT OR UPDATE ON members",
            "IF NEW.provider_subject NOT LIKE 'other-%' THEN NEW.provider_subject := 'other-' || NEW.provider_subject; END IF;
             RETURN NEW;",
        ),
    },
];

impl Run<'_> {
    /// Makes each change once while its fault is in the database. Returns what was noticed, by the fault.
    pub(crate) fn control_members(&self, server: &PostgresServer) -> anyhow::Result<Vec<(&'static str, Findings)>> {
        let bed = TestBed::open(server, &self.plan("planted", &[]))?;
        let journal = Journal::begin(bed.folder.join("journal"))?;
        let traffic = Traffic::new(&bed, &journal, self.seed, self.slowness);
        let (program, seed, is_over) = (self.program, self.seed, AtomicBool::new(true));
        let operations =
            Operations { program, seed, bed: &bed, journal: &journal, traffic: &traffic, is_over: &is_over };
        let made = operations.made(&["organisation", "create", "--name", "Members"])?;
        let mut random = Random::new(seed, STREAM);
        let team = Team::gather(&operations, text(&made, "id")?, &mut random).context("no member joins")?;
        // A fault would hide that nobody ever gets so far.
        for _ in 0..2 {
            let member = Browser::new(&operations, text(&made, "id")?.to_owned(), &mut random);
            member.change_password(&mut random, &mut Findings::default()).context("no password is changed")?;
        }
        let mut register = bed.register()?;
        let mut noticed = Vec::new();
        for Fault { change, title, trigger: (event, body) } in FAULTS {
            let mut found = Findings::default();
            let plant = format!(
                "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$;
                 CREATE TRIGGER planted BEFORE {event} FOR EACH ROW EXECUTE FUNCTION planted()"
            );
            let done = team.carry_out(change, &mut random, &mut found, || register.batch_execute(&plant).ok());
            done.with_context(|| format!("{title}: the change is not made"))?;
            register.batch_execute("DROP FUNCTION planted CASCADE")?;
            noticed.push((title, found));
        }
        Ok(noticed)
    }
}
