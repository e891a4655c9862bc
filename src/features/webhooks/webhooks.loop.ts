import { defineLoop } from '../definitions.ts'
import { webhookSenderRef } from './webhooks.ref.ts'

export default defineLoop({
  name: 'sending webhooks',
  everyMs: 500,
  needs: { sender: webhookSenderRef },
  run: ({ sender }) => sender.sendDue(),
  drain: ({ sender }, lastRun) => sender.drain(lastRun),
})
