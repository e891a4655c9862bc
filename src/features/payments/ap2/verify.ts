import { createReadStream } from 'node:fs'
import { z } from 'zod'
import type { AloneTools } from '../../command-definition.ts'
import { createKeyImporter, trustForEveryRole } from '../mandates/tokens/keys.ts'
import { attempt } from '../mandates/tokens/token-error.ts'
import { spentSchema } from '../mandates/v2/types.ts'
import { verifyCheckoutChain, verifyPaymentChain } from '../mandates/verify/chains.ts'
import { refuseAt, type Verdict } from '../mandates/verify/verdict.ts'
import { createViolation, parseBy, type Violation } from '../mandates/violations.ts'

/** A line of the input: a chain, the keys that are trusted in every role, and what the verifier expects. */
const requestSchema = z.object({
  kind: z.enum(['payment', 'checkout']),
  token: z.string(),
  trust: z.object({ keys: z.array(z.unknown()).max(1000) }),
  audience: z.string().min(1),
  nonce: z.string().min(1),
  /** Epoch seconds; absent: now. */
  now: z.number().nullish(),
  checkout_hash: z.string().nullish(),
  transaction_id: z.string().nullish(),
  open_checkout_hash: z.string().nullish(),
  spent: spentSchema.nullish(),
})

/** A longer line is refused without being read: a token has at most 256 KB. */
const maxLineBytes = 1024 * 1024

/** Lines one after the other, with as much memory as one may have. Null: it is too long. */
async function* readLines(input: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer | null> {
  let parts: Uint8Array[] = []
  let bytes = 0
  const finish = (): Buffer | null => {
    const line = bytes > maxLineBytes ? null : Buffer.concat(parts)
    parts = []
    bytes = 0
    return line
  }
  const add = (part: Uint8Array): void => {
    bytes += part.length
    if (bytes <= maxLineBytes) parts.push(part)
    else parts = []
  }
  for await (const chunk of input) {
    let begin = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, begin)) {
      add(chunk.subarray(begin, end))
      begin = end + 1
      yield finish()
    }
    add(chunk.subarray(begin))
  }
  if (bytes > 0) yield finish()
}

const refuseLine = (number: number, problem: string): Verdict<never> =>
  refuseAt('crypto', [createViolation('malformed_line', `line ${number}`, problem, 'invalid_credential')])

/** The verdict on each line that is not blank. A line that cannot be read has a verdict of its own. */
export async function* verifyLines(
  input: AsyncIterable<Uint8Array>,
  now: () => number,
): AsyncGenerator<Verdict<unknown>> {
  const importKey = createKeyImporter()
  let number = 0
  for await (const line of readLines(input)) {
    number += 1
    if (line === null) yield refuseLine(number, `has over ${maxLineBytes} bytes: send at most so many`)
    else if (line.toString().trim() !== '') yield verifyLine(line.toString(), number, now, importKey)
  }
}

const verifyLine = (
  text: string,
  number: number,
  now: () => number,
  importKey: ReturnType<typeof createKeyImporter>,
): Verdict<unknown> => {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return refuseLine(number, 'is no JSON: correct it')
  }
  const parsed = parseBy(requestSchema, json, { error: 'invalid_credential', path: [`line ${number}`] })
  if (!parsed.ok) return refuseAt('crypto', parsed.violations)
  const { kind, token, trust, audience, nonce, spent, ...facts } = parsed.value
  const violations: Violation[] = []
  const findKeys = attempt(violations, () => trustForEveryRole(trust.keys, importKey))
  if (!findKeys) return refuseAt('crypto', violations)
  const known = { findKeys, importKey, audience, nonce, now: facts.now ?? now() }
  return kind === 'checkout'
    ? verifyCheckoutChain(token, known, { checkoutHash: facts.checkout_hash ?? undefined })
    : verifyPaymentChain(token, known, {
        transactionId: facts.transaction_id ?? undefined,
        openCheckoutHash: facts.open_checkout_hash,
        spent,
      })
}

/** `mason ap2 verify`: prints the verdict on each line of a file, or of standard input. False: one is refused. */
export const verifyMandates = async (path: string, { refuse }: AloneTools): Promise<boolean> => {
  const input = path === '-' ? process.stdin : createReadStream(path)
  let areAllOk: boolean | undefined
  try {
    for await (const verdict of verifyLines(input, () => Math.floor(Date.now() / 1000))) {
      const { ok, stage, code: error, violations } = verdict
      areAllOk = ok && areAllOk !== false
      if (!process.stdout.write(`${JSON.stringify({ ok, stage, code: error, violations })}\n`))
        await new Promise((resolve) => process.stdout.once('drain', resolve))
    }
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error
    refuse(`${path} cannot be read: ${error.message}`, 'name a file of JSON lines, or - for standard input')
  }
  return (
    areAllOk ?? refuse(`${path} has no line to verify`, 'pass chains of mandates, one JSON object a line')
  )
}
