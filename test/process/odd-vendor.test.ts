// tier: all
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { type Running, startCli } from '../support/cli.ts'
import { parrotKey, parrotWords, startOddVendor } from '../support/odd-vendor.ts'

const folders: string[] = []
const servers: Running[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.kill('SIGTERM')
    await server.ended
  }
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

/** What each command block of the walk-through prints, run in one shell in their order. */
const walk = async (env: Record<string, string>): Promise<string[]> => {
  const page = await readFile(join(import.meta.dirname, '../../docs/walkthrough-odd-vendor.md'), 'utf8')
  const blocks = [...page.matchAll(/^```bash\n([\s\S]*?)^```$/gm)].map(([, commands = '']) => commands)
  const script = ['set -e', ...blocks.flatMap((block) => [block, "printf '\\n\\036'"])].join('\n')
  const output = await new Promise<string>((resolve, reject) => {
    execFile(
      'bash',
      ['-c', script],
      { env: { PATH: process.env.PATH ?? '', ...env } },
      (error, stdout, stderr) => {
        if (error) reject(new Error(`${error.message}\n${stdout}\n${stderr}`))
        else resolve(stdout)
      },
    )
  })
  return output.split('\u001e').map((text) => text.trim())
}
const json = (text: string | undefined) => JSON.parse(text ?? '')

test('a vendor with an odd answer shape is added through the API alone, and a run uses it', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'mason-parrot-'))
  folders.push(cwd)
  await using parrot = await startOddVendor()
  const MASON_ADMIN_TOKEN = 'admin-token-of-the-walk-through'
  const mason = startCli(['serve', '--port', '0'], { cwd, env: { MASON_ADMIN_TOKEN, LOG_LEVEL: 'error' } })
  servers.push(mason)
  const [, MASON = ''] = await mason.says(/listens on (http:\S+)/)

  const printed = await walk({
    MASON,
    PARROT: `${parrot.url}/v2`,
    MASON_TOKEN: MASON_ADMIN_TOKEN,
    PARROT_KEY: parrotKey,
  })
  const [, answer, format, read, model, tried, , run, usage] = printed
  expect(json(answer)).toMatchObject({ status: 'spoken' })
  expect(format).toMatch(/^fmt_/)
  expect(json(read)).toMatchObject({
    ok: true,
    raw: json(answer),
    parsed: { text: parrotWords('Good morning'), finish: 'stop' },
  })
  expect(model).toMatch(/mod_[0-9a-f]{24}$/)
  expect(json(tried)).toMatchObject({ ok: true, parsed: { text: parrotWords('Good evening') } })
  expect(json(run)).toMatchObject({ status: 'completed', finish_reason: 'answered' })
  expect(json(run).answer).toMatch(/^You said: [\s\S]*Say that again/)
  expect(json(run).usage.total_tokens).toBeGreaterThan(0)
  expect(JSON.stringify(json(usage))).toContain('parrot')
  // asked by hand, by the admin's test and by the run; every time in its own shape
  expect(parrot.requests.map(({ path }) => path)).toEqual(['/v2/talk', '/v2/talk', '/v2/talk'])
  expect(printed.join('\n')).not.toContain(parrotKey)
})
