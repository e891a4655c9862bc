import { paymentAgentsRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { createPaymentAgents } from './client/payment-agents.ts'

export default defineService({ provides: paymentAgentsRef, needs: {}, start: () => createPaymentAgents })
