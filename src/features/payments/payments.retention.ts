import { hasRow } from '../../infra/database/database.ts'
import { defineRetention } from '../definitions.ts'
import { deletePasskeys } from './consent/passkeys.ts'

const mandatesStatement = 'DELETE FROM open_mandates WHERE tenant = $1 AND user_id = $2 RETURNING 1'

/** Their passkeys and open mandates. */
export default defineRetention({
  async deleteOfUser(sql, ...user) {
    const hadPasskeys = await deletePasskeys(sql, ...user)
    return (await hasRow(sql, mandatesStatement, user)) || hadPasskeys
  },
})
