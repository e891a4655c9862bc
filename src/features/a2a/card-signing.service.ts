import { cardSigningRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { signNextCard } from './server/card-signatures.ts'

export default defineService({ provides: cardSigningRef, needs: {}, start: () => signNextCard })
