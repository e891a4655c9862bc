import { JsonNumber } from '../json.ts'
import type { JsonObject } from './encoding.ts'
import type { Refuse } from './token-error.ts'

/** Clocks of signers may be ahead by so much, and tokens are taken so much after their end. In seconds, as in AP2's SDK. */
const clockSkewSeconds = 300

const toTime = (value: unknown): string =>
  Number.isFinite(value) ? `${new Date((value as number) * 1000).toJSON() ?? value}` : String(value)

/** Checks `iat`, `nbf` and `exp` where they are there; all in seconds since 1970. */
export const checkTimes = (claims: JsonObject, now: number, refuse: Refuse): void => {
  for (const name of ['iat', 'nbf', 'exp'] as const) {
    const value = claims[name]
    if (value === undefined) continue
    // a fraction may be an object that keeps its text
    const time = value instanceof JsonNumber ? Number(value.source) : value
    if (typeof time !== 'number' || !Number.isFinite(time))
      refuse('malformed_time', name, 'is no number of seconds since 1970')
    else if (name === 'exp' ? time + clockSkewSeconds < now : time > now + clockSkewSeconds)
      refuse(
        { iat: 'issued_in_future', nbf: 'not_yet_valid', exp: 'expired' }[name],
        name,
        `is ${toTime(time)}, ${name === 'exp' ? 'before' : 'after'} the time of the verification, ${toTime(now)}`,
      )
  }
}

/** Checks `aud` and `nonce`: equal to the expected ones, or without them only that both are there. */
export const checkAudience = (
  payload: JsonObject,
  expected: { audience: string; nonce: string } | undefined,
  refuse: Refuse,
): void => {
  for (const [name, value] of [
    ['aud', expected?.audience],
    ['nonce', expected?.nonce],
  ] as const) {
    const claim = payload[name]
    if (typeof claim !== 'string' || claim === '')
      refuse(`missing_${name}`, `payload.${name}`, 'is missing: add it')
    else if (expected && claim !== value)
      refuse(`wrong_${name}`, `payload.${name}`, `is "${claim.slice(0, 100)}" in place of "${value}"`)
  }
}
