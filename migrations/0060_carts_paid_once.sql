-- A cart of AP2 0.1 has an id of its own beside that of its payment request: under either it is paid once. A checkout of 0.2 has one id, in
-- both columns. Null: of an earlier version.
ALTER TABLE payments ADD COLUMN cart_id text;
CREATE UNIQUE INDEX payments_one_live_cart ON payments (payee_issuer, cart_id)
  WHERE cart_id IS NOT NULL AND status IN ('reserved', 'sent', 'succeeded', 'unknown');
