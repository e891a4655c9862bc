import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli, startCli } from '../support/cli.ts'
import { startFakeModel } from '../support/fake-model/fake-model.ts'
import { openFolder } from '../support/file-samples.ts'
import { listRepositoryFiles, readPage } from '../support/pages.ts'
import { calling, say } from '../support/script.ts'

const root = join(import.meta.dirname, '..', '..')
const bin = join(root, 'dist', 'src', 'cli.js')

test('the feature of docs/features.md, in a repository of its own, has its table, resource, tool, loop and command', async () => {
  await using folder = await openFolder()
  const model = await startFakeModel()
  const env = { OPENAI_BASE_URL: model.baseUrl, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'fake' }
  const options = { cwd: folder.path, bin, env }
  for (const { name, code } of listRepositoryFiles(await readPage('docs/features.md'))) {
    await mkdir(dirname(join(folder.path, name)), { recursive: true })
    await writeFile(join(folder.path, name), code)
  }
  await mkdir(join(folder.path, 'node_modules'))
  await symlink(root, join(folder.path, 'node_modules', 'mason-runtime'))

  const listed = (await runCli(['features', '--json'], options)).stdout.trim().split('\n')
  expect(listed.map((line) => JSON.parse(line)).find(({ id }) => id === 'announcements')).toMatchObject({
    tables: ['announcements'],
    settings: ['MASON_ANNOUNCEMENTS_KEEP_DAYS'],
    tools: ['list_announcements'],
    routes: expect.arrayContaining(['POST /admin/v1/announcements']),
    loops: ['removing old announcements'],
    commands: ['announcements'],
  })

  const server = startCli(['serve', '--port', '0'], options)
  try {
    const url = (await server.says(/listens on (http:\S+)/))[1] ?? ''
    const token = (await readFile(join(folder.path, '.mason', 'admin-token'), 'utf8')).trim()
    const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
      return (await response.json()) as Record<string, unknown>
    }
    expect(await post('/admin/v1/announcements', { text: 'Closed on Monday' })).toMatchObject({
      id: expect.stringMatching(/^ann_/),
    })
    say(model, { planner: [calling(['list_announcements', {}]), { text: 'Not on Monday.' }] })
    const run = await post('/v1/runs/wait', { prompt: 'When are you closed?', user_id: 'ann' })
    expect(run).toMatchObject({ status: 'completed', answer: 'Not on Monday.' })
    expect(JSON.stringify(model.requests('planner').at(-1)?.messages)).toContain('Closed on Monday')
    const openapi = await (await fetch(`${url}/openapi.json`)).text()
    expect(openapi).toContain('"/admin/v1/announcements/{id}"')
    const printed = await runCli(['announcements', 'list', '--url', url, '--token', token], options)
    expect([printed.code, printed.stdout]).toEqual([0, 'Closed on Monday\n'])
  } finally {
    server.kill('SIGTERM')
    await server.ended
    await model.close()
  }
  const wrong = { ...options, env: { ...env, MASON_ANNOUNCEMENTS_KEEP_DAYS: '0' } }
  expect((await runCli(['run', 'Hello'], wrong)).stderr).toMatch(/MASON_ANNOUNCEMENTS_KEEP_DAYS: Too small/)
  const help = await runCli(['--help'], options)
  expect(help.stdout).toContain('the announcements of a server')
  const doctor = await runCli(['doctor'], options)
  expect(doctor.stdout).toContain('announcements of mason.config loads')
  await writeFile(join(folder.path, 'mason.config.ts'), 'export default {}\n')
  expect((await runCli(['doctor'], options)).stdout).toMatch(
    /has the tables of the feature "announcements", which this build does not have\n +-> put the feature back/,
  )
})
