import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../support/runs.ts'
import { scriptFlags } from '../support/script-flags.ts'
import { testInAll } from '../support/tier.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** A process under the watchdog that does `what` on each line it is sent, and says so. */
const start = (limitMs: number, what: string) => {
  const script = `
    import { watchEventLoop } from './src/infra/lib/watchdog.ts'
    watchEventLoop(${limitMs})
    process.stdin.on('data', () => { ${what} })
    console.log('ready')`
  const child = spawn(process.execPath, [...scriptFlags(), '--input-type=module', '-e', script], {
    cwd: root,
  })
  children.push(child)
  const said = { out: '', err: '' }
  child.stdout.on('data', (part) => {
    said.out += part
  })
  child.stderr.on('data', (part) => {
    said.err += part
  })
  return { child, said }
}

// ten seconds of a processor; a worker process below does the same within half a second
testInAll('a server whose event loop is blocked for as long as a lease ends itself', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-watchdog-'))
  const settings = {
    DATA_DIR: folder,
    PORT: '0',
    MASON_AUTH: 'off',
    MASON_LEASE_MS: '1000',
    HOST: '127.0.0.1',
  }
  const script = `
      import { createScrubber } from './src/infra/secrets/scrubber.ts'
      import { runServer } from './src/app/cli/serve.ts'
      process.stdin.on('data', () => { for (;;); })
      await runServer({ role: 'api' }, ${JSON.stringify(settings)}, createScrubber())`
  const child = spawn(process.execPath, [...scriptFlags(), '--input-type=module', '-e', script], {
    cwd: root,
  })
  children.push(child)
  let out = ''
  let err = ''
  child.stdout.on('data', (part) => {
    out += part
  })
  child.stderr.on('data', (part) => {
    err += part
  })
  await until('the start', () => out.includes('Mason listens'), 90_000)
  child.stdin.write('now\n')
  const [, signal] = await once(child, 'close')
  await rm(folder, { recursive: true })
  expect(signal).toBe('SIGKILL')
  expect(err).toContain('the event loop was blocked for 10000 ms')
})

describe('a worker process', () => {
  test('whose event loop is blocked exits and says why', async () => {
    const { child, said } = start(500, 'for (;;);')
    await until('the start', () => said.out.includes('ready'), 90_000)
    child.stdin.write('now\n')
    // and not 'exit': what it said may be read after that
    const [, signal] = await once(child, 'close')
    expect(signal).toBe('SIGKILL')
    expect(said.err).toMatch(/the event loop was blocked for 500 ms.*other workers take its runs/)
  }, 300_000)

  test('that was stopped as a whole for longer goes on', async () => {
    const { child, said } = start(5000, `console.log('alive')`)
    await until('the start', () => said.out.includes('ready'), 90_000)
    child.kill('SIGSTOP')
    // longer than the limit
    await pause(7000)
    child.kill('SIGCONT')
    for (let asked = 1; asked <= 2; asked++) {
      child.stdin.write('well?\n')
      await until('an answer', () => said.out.split('alive').length > asked)
    }
    expect(child.exitCode ?? child.signalCode).toBeNull()
    expect(said.err).toBe('')
  }, 300_000)
})
