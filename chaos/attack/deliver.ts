import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { RunView } from '../../src/state/run-view.ts'
import type { HttpAnswer, HttpInput, RunInput, Sighting, SocketInput, Target } from './input.ts'
import type { Call } from './stage.ts'

/** What is wrong with the outcome of an input, or null; for a run, of each of its parts. */

const maxAnswer = 64 * 1024 * 1024
const defaultMs = 10_000

export const openDelivery = (target: Target) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  return {
    http: (input: HttpInput) => deliverHttp(target, agent, input),
    [Symbol.dispose]: () => agent.destroy(),
  }
}

const deliverHttp = async (target: Target, agent: Agent, input: HttpInput): Promise<string | null> => {
  const { withinMs = defaultMs } = input
  const answer = await exchange(target, agent, input, withinMs + 5000).catch(
    (error: NodeJS.ErrnoException) => error,
  )
  if (answer instanceof Error)
    // refused before the whole of a large body was read: the reset may overtake the answer
    return (input.body?.().length ?? 0) > 1_000_000 &&
      ['ECONNRESET', 'EPIPE'].includes((answer as NodeJS.ErrnoException).code ?? '')
      ? null
      : `no answer: ${answer.message}`
  return faultOf(target, input, answer) ?? (answer.ms > withinMs ? `took ${Math.round(answer.ms)} ms` : null)
}

const exchange = (
  target: Target,
  agent: Agent,
  { as, method, path, headers = {}, body }: HttpInput,
  ms: number,
): Promise<HttpAnswer> =>
  new Promise((resolve, reject) => {
    const since = performance.now()
    const bytes = body === undefined ? undefined : Buffer.from(body())
    const token = target.tokens[as]
    const sent = request(
      {
        port: target.port,
        host: '127.0.0.1',
        agent,
        method,
        path,
        signal: AbortSignal.timeout(ms),
        headers: {
          ...(token && { authorization: `Bearer ${token}` }),
          ...(bytes && { 'content-type': 'application/json', 'content-length': bytes.length }),
          ...headers,
        },
      },
      (response) =>
        void read(response, path).then(
          (text) =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text,
              ms: performance.now() - since,
            }),
          reject,
        ),
    )
    sent.once('error', reject)
    sent.end(bytes)
  })

/** Of a stream of events the first second is enough. */
const read = async (response: IncomingMessage, path: string): Promise<string> => {
  let text = ''
  const isStream = response.headers['content-type']?.startsWith('text/event-stream')
  const enough = isStream && !path.includes('/chat/') ? setTimeout(() => response.destroy(), 1000) : undefined
  try {
    for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>)
      if (text.length < maxAnswer) text += chunk
  } catch (error) {
    if (!enough && !isStream) throw error
  } finally {
    clearTimeout(enough)
  }
  return text
}

/** JSON-RPC refuses by an error in a response of 200. */
const isRpcError = (status: number, text: string): boolean =>
  status === 200 && text.startsWith('{"jsonrpc":"2.0"') && text.includes('"error":{')

const faultOf = ({ secret, vendorKey }: Target, input: HttpInput, answer: HttpAnswer): string | null => {
  const { status, text, headers } = answer
  const said = `${status}: ${text.slice(0, 300)}`
  if (input.as !== 'admin' && text.includes(secret)) return `leaks what the victim has, ${said}`
  if (text.includes(vendorKey)) return `leaks the key of a vendor, ${said}`
  if (!headers['x-request-id']) return `has no x-request-id, ${said}`
  const isBusy = status === 503 && headers['retry-after'] !== undefined
  const fits =
    typeof input.status === 'object'
      ? input.status.includes(status)
      : input.status === 'refused'
        ? (status >= 400 && status < 500) || isRpcError(status, text)
        : input.status === 'answered'
          ? status !== 500
          : status < 500 || isBusy
  if (!fits) return `is answered ${said}`
  if (status === 422 && input.at && !text.includes(`"pointer":"${input.at}`))
    return `does not name ${input.at}, ${said}`
  return input.holds?.(answer) ?? null
}

/** Sends the head and its pieces, and waits for an answer or the end. */
export const deliverSocket = (
  { port }: Target,
  { head, piece, everyMs, pieces, withinMs }: SocketInput,
  signal: AbortSignal,
): Promise<string | null> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }).setMaxListeners(0)
    const settle = (fault: string | null): void => {
      clearTimeout(late)
      signal.removeEventListener('abort', onAbort)
      socket.destroy()
      resolve(fault)
    }
    const onAbort = (): void => settle('was not over')
    signal.addEventListener('abort', onAbort, { once: true })
    const late = setTimeout(
      () => settle(`is neither answered nor closed after ${withinMs / 1000} s`),
      withinMs,
    )
    socket.on('error', () => settle(null))
    socket.on('close', () => settle(null))
    socket.on('data', () => settle(null))
    const send = async (): Promise<void> => {
      socket.write(head)
      for (let at = 0; at < pieces && !socket.destroyed; at++) {
        if (!socket.write(piece))
          await new Promise((drained) => socket.once('drain', drained).once('close', drained))
        if (everyMs > 0) await pause(everyMs)
      }
    }
    socket.once('connect', () => void send())
  })

/** How runs are delivered: who calls, where plays are put, and whether runs have yet to be learned from. */
export type RunDelivery = {
  call: Call
  controlUrl: string
  token: string
  isLearning(user: string): Promise<boolean>
}

let count = 0

/** Plays the turns of an input one after another, by a user of its own, and judges each of its parts. */
export const deliverRun = async (delivery: RunDelivery, input: RunInput): Promise<(string | null)[]> => {
  const { call, controlUrl, token } = delivery
  const id = `a${++count}`
  const until = performance.now() + input.withinMs
  const all = (fault: string) => input.parts.map(() => fault)
  const isLate = (): boolean => performance.now() > until
  try {
    const scene = { play: input.play ?? {}, markers: input.markers ?? [] }
    await fetch(`${controlUrl}/${id}`, { method: 'PUT', body: JSON.stringify(scene) })
    let run: RunView | undefined
    for (const turn of input.turns) {
      const {
        prompt = 'Do it.',
        session_id = 'first',
        ...more
      } = turn as { prompt?: string; session_id?: string }
      const body = {
        prompt: `${prompt}\n\nplay-${id}~`,
        user_id: id,
        session_id: `${id}-${session_id}`,
        limits: { timeout_ms: 30_000, max_steps: 60 },
        ...more,
      }
      run = (await call('POST', '/v1/runs/wait', body, token)) as RunView
      for (; run.status === 'queued' || run.status === 'running'; await pause(200)) {
        if (isLate()) return all(`its run has not ended in ${input.withinMs} ms`)
        run = (await call('GET', `/v1/runs/${run.id}`, undefined, token)) as RunView
      }
      for (; input.learned && (await delivery.isLearning(id)); await pause(200))
        if (isLate()) return all(`nothing was learned in ${input.withinMs} ms`)
    }
    if (!run) throw new Error('an input without turns')
    const memories = input.learned
      ? await call('GET', `/v1/memories/export?user_id=${id}`, undefined, token)
      : { data: [], profile: [] }
    const sightings = (await (await fetch(`${controlUrl}/${id}`)).json()) as Record<string, Sighting>
    const state = await call('GET', `/v1/runs/${run.id}/state?inline=false`, undefined, token).catch(
      () => null,
    )
    const kept = [
      ...memories.data.map((one: { content: string }) => one.content),
      ...memories.profile.map((one: { value: unknown }) => String(one.value)),
    ]
    return input.parts.map(({ holds }) => holds({ run: run as RunView, state, sightings, memories: kept }))
  } catch (error) {
    return all(String(error).slice(0, 500))
  }
}
