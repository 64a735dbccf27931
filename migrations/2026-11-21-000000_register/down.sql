DROP TABLE patients;
DROP TABLE key_uses;
DROP TABLE api_keys;
DROP TABLE organisations;
DROP TABLE environment_stamp;
