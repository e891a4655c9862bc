import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'

const built = join(import.meta.dirname, '../../dist/src')

/** The files of the build that a program loads before it asks for one by `import()`. */
const listLoaded = (program: string): string[] => {
  const loaded = new Set([join(built, program)])
  for (const file of loaded)
    for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b.*"(\.[^"]+)";$/gm))
      loaded.add(join(dirname(file), path))
  return [...loaded].map((file) => relative(built, file))
}

/** What the process that reads files, and a command, loads later, by `import()`. */
const loadedLater = ['files/child', 'features/tables/child', 'app/cli'].flatMap((folder) =>
  readdirSync(join(built, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.js') && !/^(serve|standby|doctor\/)/.test(name))
    .map((name) => join(folder, name)),
)

test.each(['client/index.js', 'producer/index.js', 'cli.js', 'project/load-project.js', ...loadedLater])(
  '%s loads neither runtime nor server',
  (program) => {
    const loaded = listLoaded(program)
    expect(loaded).not.toContain('chunks/runtime.js')
    expect(loaded).not.toContain('chunks/server.js')
    expect(loaded.length).toBeGreaterThan(1)
  },
)

test('the runtime and the server are each a few files, and a worker does without the server', () => {
  const runtime = listLoaded('app/open-runtime.js')
  const server = listLoaded('app/http/app.js')
  expect(runtime).toContain('chunks/runtime.js')
  expect(runtime).not.toContain('chunks/server.js')
  expect(server).toContain('chunks/server.js')
  // of hundreds of modules
  expect(runtime.length).toBeLessThan(30)
  expect(server.length).toBeLessThan(30)
})

test('LangGraph is loaded with neither, but from its bundle, by the first run', () => {
  for (const file of [...listLoaded('app/open-runtime.js'), ...listLoaded('app/http/app.js')]) {
    expect(file).not.toMatch(/^(graph\/router|chunks\/langchain)\.js$/)
    expect(readFileSync(join(built, file), 'utf8'), file).not.toMatch(/^import\b.*"@langchain\//m)
  }
})

test('features come from their chunk, and not each through the file of its module', () => {
  const chunks = readdirSync(join(built, 'chunks')).map((file) =>
    readFileSync(join(built, 'chunks', file), 'utf8'),
  )
  const lists = chunks.filter((chunk) => chunk.includes('/feature.ts": () =>'))
  expect(lists).toHaveLength(1)
  expect(lists[0]).toMatch(/\/feature\.ts": \(\) => import\("\.\/[\w-]*runtime\.js"\)/)
  // a reader belongs to the process that reads files
  expect(lists[0]).not.toMatch(/import\("\.\.\/features\/(?![^"]*\.reader\.js")/)
})
