import { Worker } from 'node:worker_threads'
import { createPermits } from '../../infra/lib/permits.ts'
import { measureJson, parseExactJson, quoteNumbers, scanJson } from '../../state/text/exact-json.ts'
import { maxJsonDepth, maxJsonValues } from '../../state/text/json-size.ts'
import { nextTurn } from '../../state/text/next-turn.ts'
import { ProtocolError } from './provider-errors.ts'
import { excerpt } from './upstream-error.ts'

/** The longest text, in characters, that is parsed at once: a longer one would block all else that the process does. */
export const maxBlockingLength = 1024 * 1024
/** What a longer text may hold: copying its value back from the thread blocks too. */
const limits = { values: 400_000, numbers: 4_000_000, depth: maxJsonDepth }
/** Memory of a thread. */
const maxThreadMb = 1024

type Container = Record<string, unknown>

/** Replaces the lists and objects within a value for which `replace` gives another one. */
const replaceWithin = (root: Container, replace: (item: object) => object): void => {
  const open: Container[] = [root]
  for (let one = open.pop(); one !== undefined; one = open.pop())
    for (const key of Object.keys(one)) {
      const item = one[key]
      if (typeof item !== 'object' || item === null) continue
      const replaced = replace(item)
      if (replaced === item) open.push(item as Container)
      else one[key] = replaced
    }
}

/** Runs in its own thread, and gets the text in parts, then null. Long lists of numbers come back as arrays whose memory is handed over, not copied. Its reply has `value`, or the `problem` of the text, which follows "the model server sent". */
const threadScript = `
  const { parentPort, workerData: limits } = require('node:worker_threads')
  // the source of parse calls quoteNumbers by this name
  const quoteNumbers = ${quoteNumbers}
  const parse = ${parseExactJson}
  const scan = ${scanJson}
  const read = (text) => {
    const size = scan(text).next().value
    const over = Object.keys(limits).find((name) => size[name] > limits[name])
    if (over) return { problem: 'an answer of more than ' + limits[over] + ' ' + (over === 'depth' ? 'levels' : over) }
    try {
      return { value: parse(text, size) }
    } catch {
      return { problem: 'what is not JSON' }
    }
  }
  const replaceWithin = ${replaceWithin}
  const parts = []
  parentPort.on('message', (part) => {
    if (part !== null) return parts.push(part)
    const reply = read(parts.join('').replace(/[\\r\\n]+/g, ' '))
    const buffers = []
    replaceWithin(reply, (item) => {
      if (!Array.isArray(item) || item.length < 32 || !item.every(Number.isFinite)) return item
      const numbers = Float64Array.from(item)
      buffers.push(numbers.buffer)
      return numbers
    })
    parentPort.postMessage(reply, buffers)
    parentPort.close()
  })`

type ThreadReply = { value: unknown; problem?: undefined } | { problem: string }

/** Hands over a text in parts, each in its own turn of the event loop, as copying it blocks. */
const postText = async (thread: Worker, text: string, signal: AbortSignal): Promise<void> => {
  for (let at = 0; at < text.length && !signal.aborted; at += maxBlockingLength) {
    await nextTurn()
    thread.postMessage(text.slice(at, at + maxBlockingLength))
  }
  thread.postMessage(null)
}

const parseInThread = (text: string, signal: AbortSignal): Promise<ThreadReply> =>
  new Promise((resolve, reject) => {
    const thread = new Worker(threadScript, {
      eval: true,
      execArgv: [],
      env: {},
      workerData: limits,
      resourceLimits: { maxOldGenerationSizeMb: maxThreadMb },
    })
    void postText(thread, text, signal)
    const abort = (): void => {
      void thread.terminate()
      reject(signal.reason)
    }
    signal.addEventListener('abort', abort, { once: true })
    thread.once('message', resolve)
    thread.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ERR_WORKER_OUT_OF_MEMORY') return reject(error)
      resolve({ problem: `an answer that takes more than ${maxThreadMb} MB of memory to read` })
    })
    thread.once('exit', () => {
      signal.removeEventListener('abort', abort)
      reject(new Error('the thread that parses an answer ended without a reply'))
    })
  })

/** Copies lists of numbers in steps of 250,000, each in its own turn of the event loop. */
const copyNumbers = async (lists: readonly [from: Float64Array, to: number[]][]): Promise<void> => {
  let copied = 0
  for (const [from, to] of lists)
    for (const number of from) {
      to.push(number)
      if (++copied % 250_000 === 0) await nextTurn()
    }
}

/**
 * The value of a JSON text: at once, or from a thread where the text is long. Throws ProtocolError where it is not JSON,
 * or more than the process can take without a pause. The thread ends with the call.
 */
export type JsonParser = (text: string, signal: AbortSignal) => unknown

/** At most two threads parse at a time; further texts wait. */
export const createJsonParser = (): JsonParser => {
  const threads = createPermits(2)
  const parseLong = async (text: string, signal: AbortSignal): Promise<unknown> => {
    await using _thread = await threads.take(signal)
    const reply = await parseInThread(text, signal)
    const lists: [from: Float64Array, to: number[]][] = []
    replaceWithin(reply, (item) => {
      if (!(item instanceof Float64Array)) return item
      const list: number[] = []
      lists.push([item, list])
      return list
    })
    await copyNumbers(lists)
    if (reply.problem === undefined) return reply.value
    throw new ProtocolError(`${reply.problem}: ${excerpt(text)}`)
  }
  return (text, signal) => {
    if (text.length > maxBlockingLength) return parseLong(text, signal)
    // raw line breaks in texts are allowed
    const line = text.replace(/[\r\n]+/g, ' ')
    const size = measureJson(line)
    if (size.values > maxJsonValues || size.depth > maxJsonDepth) return parseLong(text, signal)
    try {
      return parseExactJson(line, size)
    } catch {
      throw new ProtocolError(`what is not JSON: ${excerpt(text)}`)
    }
  }
}
