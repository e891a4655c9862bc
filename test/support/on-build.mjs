// `node --import <this file> script.ts`: runs TypeScript of tests, chaos and examples on the built src, as it is shipped.
// That starts twice as fast as sources through tsx. Who starts it makes sure that the build is no older than src.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { register } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isMainThread } from 'node:worker_threads'

const root = new URL('../../', import.meta.url).href
const source = `${root}src/`
const built = `${root}dist/src/`

/** The built file of a source; null for all other files. */
const toBuilt = (href) =>
  href.startsWith(source) && href.endsWith('.ts')
    ? `${built}${href.slice(source.length, -'.ts'.length)}.js`
    : null

/** What a script itself imports of src, by its URL. */
const listBuilt = (script) =>
  [...readFileSync(new URL(script), 'utf8').matchAll(/^(?!import type\b).*\bfrom '(\.[^']+)'/gm)]
    .map(([, path]) => toBuilt(new URL(path, script).href))
    .filter((path) => path !== null)

if (isMainThread) {
  const [, script] = process.argv
  // before there are hooks: each module that goes through their thread costs as much again
  if (script !== undefined) for (const path of listBuilt(pathToFileURL(script).href)) await import(path)
  // the hooks live in a thread of Node's own, which loads this file once more
  register(import.meta.url)
}

export const resolve = (specifier, context, next) => {
  if (!/^(\.\.?\/|file:)/.test(specifier)) return next(specifier, context)
  return next(toBuilt(new URL(specifier, context.parentURL).href) ?? specifier, context)
}

/** What esbuild makes of a file is kept by its content: esbuild is a process of its own, and many processes start here. */
const kept = new URL('node_modules/.cache/on-build/', root)

export const load = async (url, context, next) => {
  // tools that a test writes are elsewhere
  if (!/^file:.*\.ts$/.test(url) || url.includes('/node_modules/')) return next(url, context)
  const sourcefile = fileURLToPath(url)
  const text = await readFile(sourcefile, 'utf8')
  const file = new URL(`${createHash('sha256').update(`${sourcefile}\n${text}`).digest('hex')}.js`, kept)
  const source = await readFile(file, 'utf8').catch(() => transformAndKeep(sourcefile, text, file))
  return { format: 'module', source, shortCircuit: true }
}

const transformAndKeep = async (sourcefile, text, file) => {
  const { transform } = await import('esbuild')
  const { code } = await transform(text, {
    loader: 'ts',
    format: 'esm',
    target: 'node20',
    supported: { 'import-attributes': true },
    sourcemap: 'inline',
    sourcefile,
  })
  // whole or not at all: others read it meanwhile
  const draft = new URL(`${file.href}.${process.pid}`)
  await mkdir(kept, { recursive: true })
  await writeFile(draft, code)
  await rename(draft, file)
  return code
}
