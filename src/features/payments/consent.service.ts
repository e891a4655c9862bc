import { databaseRef, hintsRef, serverAddressRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { createConsents } from './consent/consents.ts'
import { createOpenMandateStore } from './consent/open-mandate-rows.ts'
import { createPasskeys } from './consent/passkeys.ts'
import { consentRef } from './payments.ref.ts'
import { createExecutorWake } from './ports/work-hints.ts'

export default defineService({
  provides: consentRef,
  needs: { database: databaseRef, hints: hintsRef, address: serverAddressRef },
  start: ({ database, hints, address: { publicUrl } }) => ({
    passkeys: createPasskeys(database, publicUrl),
    consents: createConsents(database, publicUrl, () => createExecutorWake(hints)('consents')),
    mandates: createOpenMandateStore(database),
  }),
})
