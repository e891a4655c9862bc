import type { Clock } from '../../state/ports/clock.ts'
import type { CanonicalRequest, CanonicalResult, ModelEntry, ResultDelta } from '../ports/model-ports.ts'
import type { ProviderError } from '../transport/provider-errors.ts'

/** How long a reply that is whole is read on, in milliseconds, so that its end and its usage can come. */
const afterWholeMs = 200

/** Where the first of these texts begins; -1: nowhere. */
const findStop = (text: string, stop: readonly string[], from = 0): number => {
  const found = stop.map((one) => text.indexOf(one, from)).filter((at) => at >= 0)
  return found.length > 0 ? Math.min(...found) : -1
}

/** Counts the characters at the end of a text that may be the beginning of one of these, whatever their case. */
export const createOpenCounter = (texts: readonly string[]) => {
  const plain = texts.map((one) => one.toLowerCase())
  const firsts = plain.map((one) => one.charAt(0)).join('')
  const longest = Math.max(0, ...texts.map(({ length }) => length - 1))
  return (text: string): number => {
    for (let at = Math.max(0, text.length - longest); at < text.length; at++) {
      const end = text.slice(at).toLowerCase()
      if (firsts.includes(end.charAt(0)) && plain.some((one) => one.startsWith(end))) return text.length - at
    }
    return 0
  }
}

/** Reads one reply up to its end, and ends the request behind it: what comes later was not written. */
export const openReplyEnd = (
  { stop, watch }: NonNullable<CanonicalRequest['end']>,
  clock: Clock,
  onDelta: (delta: ResultDelta) => void,
) => {
  const countOpen = createOpenCounter(stop)
  const over = new AbortController()
  const signal: AbortSignal = over.signal
  const closed = new AbortController()
  let isWhole = watch()
  let held = ''
  let isWaiting = false
  const pass = (text: string, reasoning: string, restart?: true): void => {
    if (text !== '' || reasoning !== '') onDelta({ text, reasoning, ...(restart && { restart }) })
  }
  return {
    /** Aborted where the reply is over. */
    signal,
    take({ text, reasoning, restart }: ResultDelta): void {
      if (signal.aborted) return
      if (restart) {
        held = ''
        isWhole = watch()
      }
      const fresh = held + text
      const at = findStop(fresh, stop)
      const open = at < 0 ? countOpen(fresh) : 0
      held = fresh.slice(fresh.length - open)
      const known = fresh.slice(0, at < 0 ? fresh.length - open : at)
      pass(known, reasoning, restart)
      if (at >= 0) over.abort()
      if (at >= 0 || isWaiting || !isWhole(known)) return
      isWaiting = true
      clock.sleep(afterWholeMs, closed.signal).then(
        () => over.abort(),
        () => {},
      )
    },
    /** The result up to the end of its reply; `cut` counts the characters behind it. */
    finish(result: CanonicalResult): CanonicalResult {
      if (!signal.aborted) pass(held, '')
      const at = findStop(result.text, stop)
      if (at >= 0)
        return { ...result, text: result.text.slice(0, at), finish: 'stop', cut: result.text.length - at }
      // a vendor that went on behind the end, to its limit, did not cut it
      const isOpen = result.finish === 'length' || result.finish === 'unknown'
      const goesOn = isOpen && watch()(result.text.trimEnd().slice(0, -1))
      return goesOn ? { ...result, finish: 'stop' } : result
    },
    close: () => closed.abort(),
  }
}

/** The request with the field `stop`, where its replies end at texts and the vendor takes it. */
export const withStop = (ask: CanonicalRequest, { refuses_stop }: ModelEntry): CanonicalRequest =>
  ask.end && !refuses_stop ? { ...ask, parameters: { ...ask.parameters, stop: [...ask.end.stop] } } : ask

/** Whether a 400 or 422 is about the field `stop`, in the words of vendors. */
export const isStopRefusal = ({ status, body = '' }: ProviderError): boolean =>
  (status === 400 || status === 422) && /(?<![\w-])stop(_?sequences?|_words)?(?![\w-])/i.test(body)
