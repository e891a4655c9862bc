import type { ChatOpenAICompletions } from '@langchain/openai'
import { MasonError } from '../../state/errors.ts'
import type { Clock, Log, ModelReply, ModelRequest, Models } from '../../state/ports.ts'
import { addUsage, noUsage } from '../../state/usage.ts'
import { askOf, lowerMode, refusesFormat, type SchemaMode, usedCallIds } from './openai/ask.ts'
import { tryOnce } from './openai/attempt.ts'
import type { Clocks, Exchange } from './openai/exchange.ts'
import { failureOf, shownUrl } from './openai/failure.ts'
import type { Fault } from './openai/faults.ts'
import { createModelFetch, type Fetch } from './openai/model-fetch.ts'
import { backoffMs, type Retry } from './openai/retry.ts'

export type OpenAIOptions = {
  /** Absent for servers that ask for none. */
  apiKey?: string
  /** Up to and with `/v1`. A query in it is kept, for gateways that want one. */
  baseUrl?: string
  model: string
  fetch?: Fetch
  clocks: Clocks
  retry: Retry
  clock: Clock
  log?: Log
  /** The most a reply may weigh, in bytes after decompression. */
  maxBytes?: number
  /** The jitter, from 0 to 1. */
  random?: () => number
}

const publicBaseUrl = 'https://api.openai.com/v1'
const defaultMaxBytes = 32 * 1024 * 1024

const endpointOf = (baseUrl: string): string => {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new MasonError('invalid_settings', 'OPENAI_BASE_URL is not an http or https address', {
      remedy: 'set it to something like https://api.openai.com/v1',
    })
  }
  if (url.username !== '' || url.password !== '') {
    throw new MasonError('invalid_settings', 'OPENAI_BASE_URL holds a user name or a password', {
      remedy: 'leave them out, and put the key into OPENAI_API_KEY',
    })
  }
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/chat/completions`
  url.hash = ''
  return url.href
}

const keyOf = (apiKey: string | undefined): string | undefined => {
  const key = apiKey?.trim()
  if (key === undefined || key === '') return undefined
  if (/^[\x21-\x7e]+$/.test(key)) return key
  throw new MasonError('invalid_settings', 'OPENAI_API_KEY has characters that no HTTP header can carry', {
    remedy: 'copy the key again, without quotes, spaces or line ends',
  })
}

/** Loads LangChain at the first call and builds its client once (a client per call costs 0.15 ms more). */
const loadChat = async (model: string, fetch: Fetch): Promise<ChatOpenAICompletions> =>
  (await import('./openai/chat.ts')).createChat(model, fetch)

/** The `Models` port over one OpenAI-compatible server. Throws `invalid_settings` for an unusable key or address. */
export const openModels = (options: OpenAIOptions): Models => {
  const { clock, clocks, retry, log, random = Math.random } = options
  const baseUrl = options.baseUrl ?? publicBaseUrl
  const url = endpointOf(baseUrl)
  const apiKey = keyOf(options.apiKey)
  const exchanges = new Map<string, Exchange>()
  /** How this server lets a role of a model ask for JSON: what worked last. */
  const modes = new Map<string, SchemaMode>()
  let chat: Promise<ChatOpenAICompletions> | undefined
  let lastId = 0

  const modelFetch = createModelFetch({
    fetch: options.fetch ?? globalThis.fetch,
    url,
    apiKey,
    clock,
    maxBytes: options.maxBytes ?? defaultMaxBytes,
    idleMs: clocks.idleMs,
    find: (id) => exchanges.get(id),
  })

  /** Deltas are best effort: a listener that throws does not harm the call. */
  const tell = (request: ModelRequest, text: string, attempt: number): void => {
    try {
      request.onText?.(text, attempt)
    } catch (error) {
      log?.warn({ role: request.role, error: String(error) }, 'a listener for streamed text threw')
    }
  }
  /** How long to wait before the next request, or undefined when there is none: no retry left, or no time. */
  const waitMs = (fault: Fault, retries: number, endsAtMs: number): number | undefined => {
    if (!fault.retry || retries >= retry.attempts) return undefined
    const ms = Math.max(backoffMs(retry, retries, random), fault.retryAfterMs ?? 0)
    return clock.monotonicMs() + ms < endsAtMs ? ms : undefined
  }

  const call = async (request: ModelRequest, signal: AbortSignal): Promise<ModelReply> => {
    signal.throwIfAborted()
    chat ??= loadChat(options.model, modelFetch)
    const client = await chat
    const { role, model = options.model } = request
    const endsAtMs = clock.monotonicMs() + clocks.totalMs
    const modeKey = `${model} ${role}`
    const usedIds = usedCallIds(request.messages)
    let mode = modes.get(modeKey) ?? 'json_schema'
    let usage = noUsage
    let retries = 0
    for (let attempts = 1; ; attempts += 1) {
      const id = String(++lastId)
      const ask = askOf(request, mode)
      const onText = (text: string): void => tell(request, text, attempts)
      const common = {
        chat: client,
        exchanges,
        clock,
        clocks,
        endsAtMs,
        id,
        role,
        model,
        ask,
        usedIds,
        onText,
      }
      const outcome = await tryOnce(common, signal)
      if (outcome.ok) {
        if (request.schema !== undefined) modes.set(modeKey, mode)
        return { ...outcome.reply, usage: addUsage(usage, outcome.reply.usage) }
      }
      const { fault } = outcome
      usage = addUsage(usage, outcome.usage)
      const lower = request.schema === undefined || !refusesFormat(fault) ? undefined : lowerMode(mode)
      if (lower !== undefined) {
        mode = lower
        log?.info({ role, model, response_format: lower }, 'the model server refuses response_format')
        continue
      }
      retries += 1
      const delay_ms = waitMs(fault, retries, endsAtMs)
      if (delay_ms === undefined) throw failureOf(fault, { baseUrl, model, apiKey, attempts, usage })
      log?.warn(
        { role, model, code: fault.code, status: fault.status, attempts, delay_ms: Math.round(delay_ms) },
        'model call again',
      )
      await clock.sleep(delay_ms, signal)
    }
  }

  return {
    call,
    knows: (model) => model === options.model,
    describe: () => ({ name: options.model, offline: false, base_url: shownUrl(baseUrl) }),
  }
}
