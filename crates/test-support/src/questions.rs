//! What tests ask a database again and again.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

use crate::database::TestDatabase;

impl TestDatabase {
    /// Returns how many rows a query finds.
    #[must_use]
    pub fn count(&self, from: &str) -> i64 {
        let query = format!("SELECT count(*) AS count FROM {from}");
        self.ask(|connection| diesel::sql_query(&query).get_result::<WithCount>(connection)).count
    }

    /// The rows of a query that has one column of text.
    #[must_use]
    pub fn texts(&self, query: &str) -> Vec<String> {
        #[derive(QueryableByName)]
        struct WithText {
            #[diesel(sql_type = Text)]
            text: String,
        }

        let query = format!("SELECT text FROM ({query}) AS found (text)");
        let rows = self.ask(|connection| diesel::sql_query(&query).load::<WithText>(connection));
        rows.into_iter().map(|row| row.text).collect()
    }

    /// The tables that contain a secret anywhere: as text, or as bytes, which PostgreSQL shows in hexadecimal.
    #[must_use]
    pub fn tables_that_hold(&self, secret: &str) -> Vec<String> {
        let hexadecimal: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let tables = self.texts("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1");
        let holds = |table: &String| {
            let found = format!(
                "\"{table}\" AS t WHERE position('{secret}' in t::text) + position('{hexadecimal}' in t::text) > 0"
            );
            self.count(&found) > 0
        };
        tables.into_iter().filter(holds).collect()
    }

    /// Asks over the connection of the last question. The test may have ended that connection, and another thread may
    /// be asking over it: then over a new one.
    fn ask<T>(&self, question: impl Fn(&mut PgConnection) -> QueryResult<T>) -> T {
        let last = self.asked_over.try_lock().ok().and_then(|mut last| last.take());
        let answered = last.and_then(|mut last| question(&mut last).ok().map(|answer| (last, answer)));
        let (connection, answer) = answered.unwrap_or_else(|| {
            let mut new = self.connect();
            let answer = question(&mut new).expect("the query runs");
            (new, answer)
        });
        if let Ok(mut last) = self.asked_over.try_lock() {
            *last = Some(connection);
        }
        answer
    }
}

/// A row with one number.
#[derive(QueryableByName)]
pub struct WithCount {
    /// The number.
    #[diesel(sql_type = BigInt)]
    pub count: i64,
}
