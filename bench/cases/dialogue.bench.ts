import { createDialogueParser } from '../../src/dialogue/parser.ts'
import type { Case, Figures, Variant } from '../case.ts'
import { median } from '../support/statistics.ts'

const rounds = 11
const megabyte = 1_000_000

const fill = (text: string, length: number): string =>
  text.repeat(Math.ceil(length / text.length)).slice(0, length)

const thought = 'The second table has no column for the region, and 1 < 2: a join by its id comes first.\n'
const code = 'rows = [r for r in rows if r["n"] < 3]; print(f"<b>{len(rows)}</b>")\n'
const bodies = {
  thought: (length: number) => `<think>${fill(thought, length)}</think><answer>4</answer>`,
  body: (length: number) =>
    `<s><execute_python>${fill(code, length)}</execute_python></s>\n<execute_tools />`,
  text: (length: number) => fill(thought, length),
  '<': (length: number) => fill('<', length),
}

const read = (text: string, chunk: number): void => {
  const parser = createDialogueParser({ maxChars: Number.POSITIVE_INFINITY })
  for (let at = 0; at < text.length; at += chunk) parser.push(text.slice(at, at + chunk))
  if (parser.end().length === 0) throw new Error('nothing was read')
}

/** Milliseconds of the processor that reading so much takes. */
const time = (make: (length: number) => string, length: number, chunk: number): number => {
  const text = make(length)
  return median(
    Array.from({ length: rounds }, () => {
      const since = process.cpuUsage()
      read(text, chunk)
      const { user, system } = process.cpuUsage(since)
      return (user + system) / 1000
    }),
  )
}

const measure =
  (make: (length: number) => string, chunk: number): Variant =>
  async (place): Promise<Figures> => {
    const length = place.count(10 * megabyte)
    const ms = time(make, length, chunk)
    return {
      'MB a second': length / 1000 / ms,
      '10 MB over ten times 1 MB': ms / (10 * time(make, length / 10, chunk)),
    }
  }

// in one piece
const whole = 20 * megabyte
const dialogueCase: Case = {
  about:
    'reading replies in the language of the dialogue, by the time of the processor, and whether ten times the length takes ten times as long',
  ours: {
    'a thought of 10 MB': measure(bodies.thought, whole),
    'the body of a call of 10 MB': measure(bodies.body, whole),
    'text of 10 MB': measure(bodies.text, whole),
    '10 MB of <': measure(bodies['<'], whole),
    'a thought of 10 MB in chunks of 1 KB': measure(bodies.thought, 1024),
  },
}

export default dialogueCase
