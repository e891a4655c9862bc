import { databaseRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { trustedKeysRef } from './payments.ref.ts'
import { createTrustedKeys } from './trust/trusted-keys.ts'

export default defineService({
  provides: trustedKeysRef,
  needs: { database: databaseRef },
  start: ({ database }) => createTrustedKeys(database),
})
