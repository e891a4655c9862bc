import { readCount } from '../../infra/database/database.ts'
import { databaseRef, deadWebhooksRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'

const statement = "SELECT count(*)::int AS count FROM webhook_deliveries WHERE status = 'dead'"

export default defineService({
  provides: deadWebhooksRef,
  needs: { database: databaseRef },
  start:
    ({ database }) =>
    () =>
      readCount(database, statement),
})
