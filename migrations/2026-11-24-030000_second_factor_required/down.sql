ALTER TABLE organisations DROP second_factor_required;
