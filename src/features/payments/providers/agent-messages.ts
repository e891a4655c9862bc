import type { AgentMessage, AgentPart } from '../../../state/ports/agents.ts'
import type { Json } from '../../../state/runtime-state.ts'
import { ap2Defaults, ap2Keys, ap2Texts } from '../../ap2-wire.ts'
import type { MandatePair } from '../ledger/orders.ts'
import type { AgentRoute } from '../ports/agent-route.ts'

/** What the executor says to agents: the messages of AP2 that move money (AP2.md 3.2, steps 7 to 12, and those of 0.2). */

/** An order that goes over A2A. */
export type AgentOrder = MandatePair & { route: AgentRoute }

const data = (name: string, value: Json): AgentPart => ({ data: { [name]: value } })

/** The signed texts. In 0.1 the cart goes along, so that who gets the mandate can check its hash. */
const toMandates = (order: MandatePair): AgentPart[] =>
  order.version === '0.1'
    ? [
        data(ap2Keys.paymentMandate, JSON.parse(order.payment)),
        data(ap2Keys.cartMandate, JSON.parse(order.cart)),
      ]
    : [data(ap2Keys.paymentMandateSdJwt, order.payment)]

const toShopper = ({ risk_data }: AgentRoute): AgentPart[] => [
  data(ap2Keys.riskData, risk_data ?? ap2Defaults.riskData),
  data(ap2Keys.shoppingAgentId, ap2Defaults.shoppingAgentId),
]

const toMerchant = ({ route }: AgentOrder, parts: AgentPart[]): AgentMessage => ({
  agent: route.agent,
  parts,
  ...(route.context_id !== null && { context_id: route.context_id }),
})

/** To the credentials provider, before the payment: the signed mandate, for which 0.2 asks a token. */
export const toPresentation = (order: AgentOrder, checkoutHash: string): AgentMessage => {
  const { route } = order
  const parts: AgentPart[] =
    order.version === '0.1'
      ? [
          { text: ap2Texts.sendMandate },
          ...toMandates(order),
          data(ap2Keys.riskData, route.risk_data ?? ap2Defaults.riskData),
        ]
      : [
          { text: ap2Texts.getToken },
          ...toMandates(order),
          data(ap2Keys.methodAlias, route.alias ?? ''),
          ...(route.user_email === null ? [] : [data(ap2Keys.userEmail, route.user_email)]),
          data(ap2Keys.checkoutHash, checkoutHash),
        ]
  const { credentials_agent: agent, credentials_context_id: context_id } = route
  return { agent: agent ?? '', parts, ...(context_id !== null && { context_id }) }
}

/** To the merchant: take the payment. `token` is the credential of 0.2, which 0.1 has in its mandate. */
export const toPaymentMessage = (order: AgentOrder, token: string | null): AgentMessage =>
  toMerchant(
    order,
    order.version === '0.1'
      ? [{ text: ap2Texts.initiate }, ...toMandates(order), ...toShopper(order.route)]
      : [
          { text: ap2Texts.completeCheckout },
          data(ap2Keys.checkoutMandateSdJwt, order.checkout),
          ...toMandates(order),
          ...(token === null ? [] : [data(ap2Keys.token, token)]),
          ...toShopper(order.route),
        ],
  )

/** To the merchant, in the task that asked: the answer of the person. */
export const toChallengeMessage = (order: AgentOrder, taskId: string, answer: string): AgentMessage => ({
  ...toMerchant(order, [
    { text: ap2Texts.initiateWithChallenge },
    ...toMandates(order),
    data(ap2Keys.challengeResponse, answer),
    ...toShopper(order.route),
  ]),
  task_id: taskId,
})
