import { defineRef } from '../definitions.ts'
import type { Consents } from './consent/consents.ts'
import type { OpenMandateStore } from './consent/open-mandate-rows.ts'
import type { Passkeys } from './consent/passkeys.ts'
import type { PaymentsApi } from './payments-api.ts'
import type { Providers } from './providers/provider-rows.ts'

/** What admins, businesses and providers do about payments. */
export const paymentsRef = defineRef<PaymentsApi>('payments.api')
/** What users sign payments with, and what they have signed. */
export const consentRef = defineRef<{ passkeys: Passkeys; consents: Consents; mandates: OpenMandateStore }>(
  'payments.consent',
)
/** The payment providers, for admins. */
export const providersRef = defineRef<Providers>('payments.providers')
