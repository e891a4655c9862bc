import { createFieldsError } from '../../state/resource-schema.ts'

/** Throws `invalid_request`, with a pointer to `field`, for an address that a business must not have called. */
export type CheckWebhookAddress = (businessId: string, url: string, field: string) => Promise<void>

/** Without a feature that sends webhooks each address is refused. */
export const refuseWebhookAddress: CheckWebhookAddress = async (_, __, field) => {
  throw createFieldsError({ pointer: `/${field}`, detail: 'this server sends no webhooks; omit it' })
}
