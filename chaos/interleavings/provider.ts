import type { EffectRequest } from '../../src/state/ports/effects.ts'
import { type Fence, isOurs } from './protocol.ts'
import type { Actor, Stage } from './stage.ts'

const classes = ['keyed', 'queryable', 'manual'] as const
/** `mayResend`: it had not acted at the last look-up, and no owner has sent since. */
type Asked = { acted: boolean; sends: number; mayResend: boolean }

/**
 * A provider outside the database that checks what it is sent. A worker that has lost its run without knowing may
 * still send what it was about to: no fence reaches that far, so only what owners send is judged.
 */
export const createProvider = (stage: Stage) => {
  const asked = new Map<string, Asked>()
  const askedFor = (key: string): Asked => {
    const known = asked.get(key) ?? { acted: false, sends: 0, mayResend: false }
    asked.set(key, known)
    return known
  }

  /** Whether it took place, for who then decides to send again. */
  const look = (key: string): boolean => {
    const known = askedFor(key)
    known.mayResend = !known.acted
    return known.acted
  }

  /** What is wrong with this send, or null. */
  const faultOf = (kind: EffectRequest['class'], key: string, bytes: string, fence: Fence): string | null => {
    const row = stage.state.effects[key]
    const { sends, acted, mayResend } = askedFor(key)
    if (!row) return 'not in the ledger'
    if (row.request !== bytes) return `"${bytes}" in place of "${row.request}"`
    if (row.sends <= sends) return 'more often than the ledger says'
    if (!isOurs(stage.state, fence)) return null
    if (row.status !== 'sent') return `while the ledger says ${row.status}`
    if (kind === 'queryable' && acted && !mayResend) return 'again, though a look-up knows it'
    if (kind === 'manual' && sends > 0 && !mayResend) return 'again, though what became of it is unknown'
    return null
  }

  return {
    /** What a worker asks for; which class it is depends on the run alone, its bytes on the worker. */
    requestOf: (actor: Actor, fence: Fence, prompt: string): EffectRequest => {
      const kind = classes[Number(prompt) % classes.length] ?? 'manual'
      return {
        class: kind,
        windowMs: 3_600_000,
        request: `pay, says ${actor.name}`,
        send: (bytes, key) =>
          stage.outside(actor, 'sends', () => {
            const fault = faultOf(kind, key, bytes, fence)
            if (fault) stage.fail(`${actor.name} sent ${key}: ${fault}`)
            const known = askedFor(key)
            known.sends++
            known.acted = true
            if (isOurs(stage.state, fence)) known.mayResend = false
            return `receipt for ${key}`
          }),
        lookup: (key) => stage.outside(actor, 'looks up', () => (look(key) ? `receipt for ${key}` : null)),
      }
    },
    /** An operator looks whether it took place, and may allow to send it again. */
    mayResend: (key: string): boolean => !look(key),
  }
}

export type Provider = ReturnType<typeof createProvider>
