import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readPage } from '../support/pages.ts'

/** A project outside that has installed the package with its dependencies, and nothing else. */

const root = join(import.meta.dirname, '..', '..')
let project: string

const linkPackage = async (name: string): Promise<void> => {
  const path = join(project, 'node_modules', name)
  await mkdir(dirname(path), { recursive: true })
  await symlink(join(root, 'node_modules', name), path)
}

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'mason-package-'))
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  await Promise.all([
    writeFile(join(project, 'package.json'), '{"type": "module"}'),
    ...['package.json', ...manifest.files].map((name) =>
      cp(join(root, name), join(project, 'node_modules', 'mason-runtime', name), { recursive: true }),
    ),
    ...Object.keys(manifest.dependencies).map(linkPackage),
  ])
})
afterAll(() => rm(project, { recursive: true, force: true }))

const run = (command: string, args: string[], env: NodeJS.ProcessEnv = {}) =>
  promisify(execFile)(command, args, { cwd: project, env: { PATH: process.env.PATH, ...env } }).then(
    ({ stdout }) => ({ code: 0, output: stdout }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
      code,
      output: stdout + stderr,
    }),
  )
const runMason = (args: string[], env: NodeJS.ProcessEnv) =>
  run(process.execPath, [join('node_modules', 'mason-runtime', 'dist', 'src', 'cli.js'), ...args], env)

test('a strict project without @types/node compiles, and the types of every dependency are checked', async () => {
  const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const imports = Object.keys(exports).map(
    (path, index) => `export * as part${index} from 'mason-runtime${path.slice(1)}'`,
  )
  await writeFile(join(project, 'index.ts'), `${imports.join('\n')}\n`)
  const compilerOptions = { strict: true, module: 'nodenext', target: 'es2022', noEmit: true, types: [] }
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['index.ts'] }))
  expect(await run(join(root, 'node_modules', '.bin', 'tsc'), ['-p', '.'])).toEqual({ code: 0, output: '' })
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

test('the worked example of an own repository compiles with its own service, and its test passes', async () => {
  const { blocks } = await readPage('docs/write-a-tool.md')
  const files = blocks.flatMap(({ info, code }) => {
    const name = /^\/\/ (\S+)\n/.exec(code)?.[1]
    return info.endsWith(' repository') && name !== undefined ? [{ name, code }] : []
  })
  const shop = join(project, 'shop')
  for (const { name, code } of files) {
    await mkdir(dirname(join(shop, name)), { recursive: true })
    await writeFile(join(shop, name), code)
  }
  const compilerOptions = {
    ...{ strict: true, module: 'nodenext', target: 'es2022', noEmit: true, types: [] },
    ...{ lib: ['es2022', 'dom'], allowImportingTsExtensions: true },
  }
  const sources = files.map(({ name }) => name).filter((name) => name.endsWith('.ts'))
  expect(sources).toHaveLength(3)
  await writeFile(join(shop, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: sources }))
  expect(await run(join(root, 'node_modules', '.bin', 'tsc'), ['-p', 'shop'])).toEqual({
    code: 0,
    output: '',
  })
  await promisify(execFile)(process.execPath, ['--test'], { cwd: shop })
})

test('a tool file that computes without end ends the start, which names it', async () => {
  const folder = join(project, 'endless')
  await mkdir(folder)
  await writeFile(join(folder, 'wait.tool.ts'), 'for (;;);\n')
  const { code, output } = await runMason(['tools'], { MASON_TOOLS: folder })
  expect([code, output]).toEqual([
    null,
    expect.stringContaining(`mason: ${join(folder, 'wait.tool.ts')} takes more than 5 s`),
  ])
})
