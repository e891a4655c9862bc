import { createTimeOrderedId } from '../../../infra/lib/ids.ts'

/** A new id of a payment, sorted by time. */
export const newPaymentId = (): string => `pay_${createTimeOrderedId()}`
/** A new id of an open mandate, sorted by time. */
export const newOpenMandateId = (): string => `mnd_${createTimeOrderedId()}`
/** A new id of an order to the executor, sorted by time. */
export const newPaymentOrderId = (): string => `ord_${createTimeOrderedId()}`
/** A new id of a consent, sorted by time. */
export const newConsentId = (): string => `con_${createTimeOrderedId()}`
