//! Rows of queries that are written as text and give one column.

use diesel::prelude::*;
use diesel::sql_types::{Text, Uuid as SqlUuid};
use uuid::Uuid;

#[derive(QueryableByName)]
pub(crate) struct Named {
    #[diesel(sql_type = Text)]
    pub(crate) name: String,
}

#[derive(QueryableByName)]
pub(crate) struct Id {
    #[diesel(sql_type = SqlUuid)]
    pub(crate) id: Uuid,
}
