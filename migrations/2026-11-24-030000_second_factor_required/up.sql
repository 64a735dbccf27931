-- Whether every member must use two-step sign-in.
ALTER TABLE organisations ADD second_factor_required boolean NOT NULL DEFAULT false;
