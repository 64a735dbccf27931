DROP TABLE familiar_networks;
