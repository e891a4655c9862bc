import { isMasonError } from '../../state/errors.ts'
import { databaseRef, sealForExecutorRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { sealForExecutor } from './keys/sealed-texts.ts'

export default defineService({
  provides: sealForExecutorRef,
  needs: { database: databaseRef },
  start:
    ({ database }) =>
    (text, purpose) =>
      sealForExecutor(database, text, purpose).catch((error: unknown) => {
        if (isMasonError(error, 'secret_unreadable')) return null
        throw error
      }),
})
