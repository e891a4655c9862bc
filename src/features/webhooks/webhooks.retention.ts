import { defineRetention } from '../definitions.ts'

/** Delivered and dead ones; those that are still sent end within about a day. */
const deleteStatement = `
  DELETE FROM webhook_deliveries WHERE webhook_id = ANY(ARRAY(SELECT webhook_id FROM webhook_deliveries
    WHERE created_at < clock_timestamp() - $1::int * interval '1 day' AND ended_at IS NOT NULL ORDER BY created_at LIMIT 500))`

export default defineRetention({ sweep: (database, days) => database.query(deleteStatement, [days]) })
