import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import { startVendor, type Vendor, type VendorAnswer, type VendorRequest } from './http-vendor.ts'

/**
 * Parrot Systems, an invented vendor: own names for everything, and no field that it does not know.
 * docs/walkthrough-odd-vendor.md adds it to Mason. `npx tsx test/support/odd-vendor.ts [port]` starts it by itself.
 */

export const parrotKey = 'parrot-secret-20938475'

const talkSchema = z.strictObject({
  engine: z.literal('macaw-2'),
  dialogue: z
    .array(z.strictObject({ who: z.enum(['rules', 'human', 'machine', 'helper']), says: z.string() }))
    .min(1),
  knobs: z.strictObject({ heat: z.number().min(0).max(2).optional(), ceiling: z.int().min(1).optional() }),
})

/** What it says to everything. */
export const parrotWords = (heard: string): string => `You said: ${heard}`

const refuse = (status: number, why: string): VendorAnswer => ({ status, body: { status: 'silent', why } })

const answer = (request: VendorRequest): VendorAnswer => {
  if (request.path !== '/v2/talk' || request.method !== 'POST') return refuse(404, 'no such perch')
  if (request.headers['x-parrot-key'] !== parrotKey) return refuse(401, 'I do not know you')
  const talk = talkSchema.safeParse(request.body)
  if (!talk.success) return refuse(422, z.prettifyError(talk.error))
  const heard = talk.data.dialogue.flatMap(({ who, says }) => (who === 'human' ? [says] : [])).join('\n\n')
  const words = parrotWords(heard)
  return {
    body: {
      status: 'spoken',
      payload: {
        utterances: [
          { kind: 'thought', words: 'I shall repeat it, as parrots do.' },
          { kind: 'speech', words },
        ],
        halted_because: 'said_everything',
      },
      meter: {
        heard_tokens: Math.ceil(request.text.length / 4),
        uttered_tokens: Math.ceil(words.length / 4),
      },
    },
  }
}

export const startOddVendor = (port = 0): Promise<Vendor> => startVendor(answer, port)

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { url } = await startOddVendor(Number(process.argv[2] ?? 0))
  process.stdout.write(`Parrot Systems talks at ${url}/v2 to clients with the key ${parrotKey}\n`)
}
