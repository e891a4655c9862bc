import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { testInAll } from '../support/tier.ts'
import { project, root, run } from './installed-package.ts'

const runMason = (args: string[], env: NodeJS.ProcessEnv) =>
  run(process.execPath, [join('node_modules', 'mason-runtime', 'dist', 'src', 'cli.js'), ...args], env)

test('a strict project compiles, and the types of every dependency are checked', async () => {
  const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const imports = Object.keys(exports).map(
    (path, index) => `export * as part${index} from 'mason-runtime${path.slice(1)}'`,
  )
  await writeFile(join(project, 'index.ts'), `${imports.join('\n')}\n`)
  const compilerOptions = { strict: true, module: 'nodenext', target: 'es2022', noEmit: true, types: [] }
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['index.ts'] }))
  expect(await run(join(root, 'node_modules', '.bin', 'tsc'), ['-p', '.'])).toEqual({ code: 0, output: '' })
})

test('the package has the migrations of the core and of every feature', async () => {
  const listIn = async (folder: string): Promise<string[]> =>
    (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.sql')).sort()
  const packed = join(project, 'node_modules', 'mason-runtime')
  for (const folder of ['migrations', join('src', 'features')]) {
    const files = await listIn(join(root, folder))
    expect(files.length).toBeGreaterThan(0)
    expect(await listIn(join(packed, folder))).toEqual(files)
  }
})

test('the package has the console, compressed, in at most 1 MB of its tarball', async () => {
  const folder = join(project, 'node_modules', 'mason-runtime', 'dist', 'console')
  const files = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name))
  expect(paths).toContain(join(folder, 'index.html'))
  const sizes = await Promise.all(paths.map(async (path) => gzipSync(await readFile(path)).length + 512))
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(1024 * 1024)
  const scripts = paths.filter((path) => path.endsWith('.js'))
  expect(scripts.length).toBeGreaterThan(0)
  for (const path of scripts) for (const end of ['br', 'gz']) expect(paths).toContain(`${path}.${end}`)
})

test('the package has no part of LangSmith, which would trace runs over a connection of its own', async () => {
  const built = join(project, 'node_modules', 'mason-runtime', 'dist', 'src')
  for (const file of [
    'graph/router.js',
    'models/providers/openai/langchain-clients.js',
    'chunks/langchain.js',
  ])
    expect(await readFile(join(built, file), 'utf8')).not.toContain('node_modules/langsmith/')
})

test('traces without OpenTelemetry end the start, with what to install', async () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', DATA_DIR: join(project, 'data') }
  const { code, output } = await runMason(['run', 'hello'], env)
  expect(code).toBe(2)
  expect(output).toContain('OpenTelemetry is not installed')
  expect(output).toMatch(/npm install '@opentelemetry\/api@.*'@opentelemetry\/sdk-trace-node@/)
})

test('a hint names the command that this package has on npm', async () => {
  const { code, output } = await runMason(['run', 'hello', '--url', 'http://127.0.0.1:1'], {})
  expect([code, output]).toEqual([1, expect.stringContaining('start `npx mason-runtime serve` there')])
})

testInAll('a tool file that computes without end ends the start, which names it', async () => {
  const folder = join(project, 'endless')
  await mkdir(folder)
  await writeFile(join(folder, 'wait.tool.ts'), 'for (;;);\n')
  const { code, output } = await runMason(['tools'], { MASON_TOOLS: folder })
  expect([code, output]).toEqual([
    null,
    expect.stringContaining(`mason: ${join(folder, 'wait.tool.ts')} takes more than 60 s`),
  ])
})
