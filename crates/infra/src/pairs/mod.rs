//! Patients that may be one person, found in PostgreSQL.

mod register;
