import { z } from 'zod'
import { readCallInput, resultDraft } from '../../../src/graph/call-drafts.ts'
import { defineTool } from '../../../src/graph/definitions.ts'
import { openEgress } from '../../../src/infra/egress/egress.ts'
import type { Egress, EgressResponse } from '../../../src/infra/egress/egress-port.ts'
import { readBodyChunks } from '../../../src/infra/egress/response.ts'
import { openDeadline } from '../../../src/state/deadline.ts'
import type { EffectRequest } from '../../../src/state/ports/effects.ts'

/** Less than what the ledger takes when it is late with an order; it never is with a look. */
const orderMs = 2000
const lookMs = 30_000

const input = z.strictObject({ url: z.string(), item: z.string() })

type Asking = { withinMs: number; method?: string; body?: string; beforeSend?: () => void }

const textOf = async ({ body }: EgressResponse): Promise<string> => {
  const pieces: Uint8Array[] = []
  for await (const bytes of readBodyChunks(body)) pieces.push(bytes)
  return Buffer.concat(pieces).toString()
}

const ask = async (
  egress: Egress,
  url: string,
  { withinMs, ...init }: Asking,
  signal: AbortSignal,
): Promise<string> => {
  using deadline = openDeadline(withinMs, signal)
  const answer = await egress.request(url, { ...init, allowPrivate: true, signal: deadline.signal })
  const said = await textOf(answer)
  if (answer.status !== 200) throw new Error(`the ledger answered ${answer.status}`)
  return said
}

/** A pure tool that has a look at the ledger's server, and changes nothing there. */
export const createLookTool = () => {
  const egress = openEgress()
  return defineTool({
    name: 'ledger_look',
    description: 'Looks at the ledger',
    kinds: ['call'],
    pure: true,
    input: input.extend({ how: z.literal('big').optional() }),
    reads: [],
    writes: [],
    async run(_state, context, signal) {
      const { url, item, how = '' } = readCallInput(context)
      const text = await ask(egress, `${url}/look?item=${item}&how=${how}`, { withinMs: lookMs }, signal)
      return context.checkpoint(resultDraft(`Saw ${item}`, text))
    },
  })
}

/** A tool that has the ledger do something, with the class of its side effect. */
export const createEffectTool = (kind: EffectRequest['class']) => {
  const egress = openEgress()
  return defineTool({
    name: `ledger_${kind}`,
    description: 'Has the ledger do something',
    kinds: ['call'],
    input,
    reads: [],
    writes: [],
    async run(_state, context) {
      const { url, item } = readCallInput(context)
      const text = await context.effect({
        class: kind,
        ...(kind === 'keyed' && { windowMs: 3_600_000 }),
        request: JSON.stringify({ class: kind, item }),
        send: (request, key, lastLook, signal) => {
          const body = JSON.stringify({ ...JSON.parse(request), key })
          const order = { method: 'POST', body, withinMs: orderMs, beforeSend: lastLook }
          return ask(egress, `${url}/act`, order, signal)
        },
        ...(kind === 'queryable' && {
          lookup: async (key, signal) =>
            (await ask(egress, `${url}/deeds?key=${key}`, { withinMs: lookMs }, signal)) || null,
        }),
      })
      return context.checkpoint(resultDraft(`Did ${item}`, text))
    },
  })
}
