-- The service's role, made by psql when the database of compose.yaml is initialised. `intake migrate` grants it what it needs.
\set password `cat /run/secrets/service-password`
CREATE ROLE intake_service LOGIN PASSWORD :'password';
