import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { Environment } from '../../infra/config.ts'
import { UsageError } from '../failure.ts'

const remedy = 'name the variable that holds it with --key-env NAME, pipe it in, or say --no-key'

/** The key of a vendor: from the variable that is named, typed unseen, or piped in. Never an argument, which others can see. */
export const readSecret = async (variable: string | undefined, env: Environment): Promise<string> => {
  if (variable === undefined) {
    const secret = process.stdin.isTTY ? await typed() : await piped()
    if (secret === '') throw new UsageError('there is no key', remedy)
    return secret
  }
  const secret = env[variable]?.trim()
  // its name is not repeated: it may well be the key itself
  if (!secret) throw new UsageError('there is no variable of the name that --key-env gives', remedy)
  return secret
}

const piped = async (): Promise<string> => {
  const parts: Buffer[] = []
  for await (const part of process.stdin) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8').trim()
}

const typed = async (): Promise<string> => {
  process.stderr.write('key (not shown): ')
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  const stopped = new AbortController()
  lines.on('SIGINT', () => stopped.abort())
  try {
    return (await lines.question('', { signal: stopped.signal })).trim()
  } catch (error) {
    if (stopped.signal.aborted) throw new UsageError('stopped; nothing was made')
    throw error
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}
