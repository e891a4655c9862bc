import { z } from 'zod'
import { defineTool } from '../../../../src/graph/tool.ts'
import { openDeadline } from '../../../../src/state/deadline.ts'
import type { EffectRequest } from '../../../../src/state/ports.ts'
import { callInput, resultDraft } from '../../../../src/tools/call-draft.ts'

/** Less than what the ledger takes when it is late with an order; it never is with a look. */
const orderMs = 2000
const lookMs = 30_000

const input = z.strictObject({ url: z.string(), item: z.string() })

const ask = async (
  url: string,
  signal: AbortSignal,
  { withinMs, ...init }: RequestInit & { withinMs: number },
): Promise<string> => {
  using deadline = openDeadline(withinMs, signal)
  const response = await fetch(url, { ...init, signal: deadline.signal })
  const said = await response.text()
  if (!response.ok) throw new Error(`the ledger answered ${response.status}`)
  return said
}

/** A pure tool that has a look at the ledger's server, and changes nothing there. */
export const lookTool = () =>
  defineTool({
    name: 'ledger_look',
    description: 'Looks at the ledger',
    kinds: ['call'],
    pure: true,
    input: input.extend({ how: z.literal('big').optional() }),
    reads: [],
    writes: [],
    async run(_state, context, signal) {
      const { url, item, how = '' } = callInput(context)
      const text = await ask(`${url}/look?item=${item}&how=${how}`, signal, { withinMs: lookMs })
      return context.checkpoint(resultDraft(`Saw ${item}`, text))
    },
  })

/** A tool that has the ledger do something, with the class of its side effect. */
export const effectTool = (kind: EffectRequest['class']) =>
  defineTool({
    name: `ledger_${kind}`,
    description: 'Has the ledger do something',
    kinds: ['call'],
    input,
    reads: [],
    writes: [],
    async run(_state, context) {
      const { url, item } = callInput(context)
      const text = await context.effect({
        class: kind,
        ...(kind === 'keyed' && { windowMs: 3_600_000 }),
        request: JSON.stringify({ class: kind, item }),
        send: (request, key, signal) =>
          ask(`${url}/act`, signal, {
            withinMs: orderMs,
            method: 'POST',
            body: JSON.stringify({ ...JSON.parse(request), key }),
          }),
        ...(kind === 'queryable' && {
          lookup: async (key, signal) =>
            (await ask(`${url}/deeds?key=${key}`, signal, { withinMs: lookMs })) || null,
        }),
      })
      return context.checkpoint(resultDraft(`Did ${item}`, text))
    },
  })
