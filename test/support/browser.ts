import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

/** Chromium on this machine, or null. */
export const chromiumPath: string | null =
  (process.env.PATH ?? '')
    .split(delimiter)
    .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
    .find((path) => existsSync(path)) ?? null

// biome-ignore lint/suspicious/noExplicitAny: answers of the DevTools protocol have many shapes
type Answer = any

/** A tab with a platform authenticator that verifies its user, as a fingerprint reader does. */
export type Tab = {
  send(method: string, params?: object): Promise<Answer>
  /** The value of an expression in the page. */
  evaluate(expression: string): Promise<Answer>
  /** Opens an address and waits until it is loaded. */
  open(url: string): Promise<void>
  /** Presses the button of this id, as a person. */
  press(id: string): Promise<void>
}

/** Starts Chromium without a window. `http://localhost` is the server on this port. */
export const openBrowser = async (port: number) => {
  const profile = await mkdtemp(join(tmpdir(), 'mason-browser-'))
  const flags = [
    ...['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'],
    ...['--disable-background-networking', '--remote-debugging-pipe', `--user-data-dir=${profile}`],
    `--host-resolver-rules=MAP localhost 127.0.0.1:${port}`,
  ]
  const child = spawn(chromiumPath ?? '', flags, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const [input, output] = [child.stdio[3] as Writable, child.stdio[4] as Readable]
  const waiting = new Map<number, { resolve(result: Answer): void; reject(error: Error): void }>()
  let [rest, count] = ['', 0]
  output.setEncoding('utf8').on('data', (text: string) => {
    const messages = (rest + text).split('\0')
    rest = messages.pop() ?? ''
    for (const message of messages) {
      const { id, result, error } = JSON.parse(message)
      const call = waiting.get(id)
      waiting.delete(id)
      if (error) call?.reject(new Error(error.message))
      else call?.resolve(result)
    }
  })
  const send = (method: string, params: object = {}, sessionId?: string): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const id = ++count
      waiting.set(id, { resolve, reject })
      input.write(`${JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) })}\0`)
    })
  return {
    async newTab(): Promise<Tab> {
      const { targetId } = await send('Target.createTarget', { url: 'about:blank' })
      const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true })
      const call = (method: string, params?: object) => send(method, params, sessionId)
      const evaluate = async (expression: string): Promise<Answer> => {
        const options = { returnByValue: true, awaitPromise: true, userGesture: true }
        const { result, exceptionDetails } = await call('Runtime.evaluate', { expression, ...options })
        if (exceptionDetails) throw new Error(exceptionDetails.exception?.description)
        return result.value
      }
      await call('Page.enable')
      await call('WebAuthn.enable')
      await call('WebAuthn.addVirtualAuthenticator', {
        options: {
          ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true },
          ...{ hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
        },
      })
      return {
        send: call,
        evaluate,
        async open(url) {
          const { errorText } = await call('Page.navigate', { url })
          if (errorText) throw new Error(`${url}: ${errorText}`)
          await evaluate(
            `document.readyState === 'complete' || new Promise((done) => addEventListener('load', () => done(true)))`,
          )
        },
        press: (id) => evaluate(`document.getElementById('${id}').click()`),
      }
    },
    async close(): Promise<void> {
      await send('Browser.close').catch(() => {})
      await exited
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
