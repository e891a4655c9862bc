import { defineRef } from '../definitions.ts'
import type { WebhookDeliveries } from './webhook-deliveries.ts'
import type { WebhookSender } from './webhook-sender.ts'
import type { WebhookSettings } from './webhook-settings.ts'

/** What admins read and change of webhooks. */
export const webhooksRef = defineRef<WebhookDeliveries & { settings: WebhookSettings }>('webhooks.store')
/** Sends what is due. */
export const webhookSenderRef = defineRef<WebhookSender>('webhooks.sender')
