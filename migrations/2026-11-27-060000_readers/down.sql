DROP TABLE readers;
