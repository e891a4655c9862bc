import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Findings, findInParts, type Suite, type SuiteOptions } from '../suite.ts'

/** A test has the slice of this; its fixtures open what it needs on the servers of the tests. */
const runTest = async (
  feature: string,
  injections: number,
  { seed, scale, say, signal }: SuiteOptions,
): Promise<Findings> => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-injections-'))
  const report = join(folder, 'report.json')
  const count = Math.max(10, Math.round(injections * scale))
  const test = `test/features/${feature}/injections.test.ts`
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'served', '--silent=false', test]
  const env = { ...process.env, MASON_INJECTIONS: JSON.stringify({ seed, count, report }) }
  try {
    const child = spawn(process.execPath, args, { env, signal, stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += String(chunk)
      for (const line of String(chunk).match(/\d+ of \d+ injections.*/g) ?? []) say(line)
    })
    await once(child, 'exit')
    const text = await readFile(report, 'utf8').catch(() => null)
    if (text !== null) return JSON.parse(text) as Findings
    return { figures: { injections: 0 }, failures: [`no report: ${output.slice(-3000)}`] }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const suite: Suite = {
  about:
    'texts in pages, files, memories, tool output and products, and of merchants, wallets, cards and receipts while a run shops, that ask a planner to pay, which makes every call they ask for: no charge that the person has not approved with exactly that payee, amount and currency, and no secret in state, events or prompts',
  run: (options) =>
    findInParts(
      {
        payments: () => runTest('payments', 300, options),
        shopping: () => runTest('shopping', 100, options),
      },
      options.say,
    ),
}

export default suite
