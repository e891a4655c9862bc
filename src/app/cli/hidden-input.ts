import { createInterface, type Interface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { UsageError } from './errors.ts'

/** Reads lines of the terminal without showing what is typed. */
export const openHiddenLines = (): Interface => {
  const discarded = new Writable({ write: (_chunk, _encoding, done) => done() })
  return createInterface({ input: process.stdin, output: discarded, terminal: true })
}

/** Reads a secret from a hidden prompt, or from stdin where that is no terminal. `stopped` is said after Ctrl-C. */
export const readHidden = (prompt: string, stopped: string): Promise<string> =>
  process.stdin.isTTY ? readTyped(prompt, stopped) : readPiped()

const readPiped = async (): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8').trim()
}

const readTyped = async (prompt: string, message: string): Promise<string> => {
  process.stderr.write(`${prompt} (not shown): `)
  const lines = openHiddenLines()
  const stopped = new AbortController()
  lines.on('SIGINT', () => stopped.abort())
  try {
    return (await lines.question('', { signal: stopped.signal })).trim()
  } catch (error) {
    if (stopped.signal.aborted) throw new UsageError(message)
    throw error
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}
