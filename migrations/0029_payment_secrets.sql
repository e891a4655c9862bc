-- A credential or the answer of a person, sealed to the executor (compact JWE). It is removed when the order is done.
ALTER TABLE payment_orders ADD COLUMN sealed text;
GRANT INSERT (sealed) ON payment_orders TO mason_worker, mason_api, mason_business, mason_admin;
-- Whether an authorization takes the money at once.
ALTER TABLE payment_operations ADD COLUMN capture boolean NOT NULL DEFAULT true;
