import { defineMetrics } from '../definitions.ts'
import { webhookSenderRef } from './webhooks.ref.ts'

export default defineMetrics({
  name: 'mason_webhooks_total',
  help: 'Webhooks of this process by result: delivered, failed (an attempt), dead (given up)',
  label: 'result',
  needs: { sender: webhookSenderRef },
  read: ({ sender }) => sender.counts(),
})
