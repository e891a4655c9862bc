// Hundreds of small modules are a quarter of the processor time of a start: each is found, opened, read and linked alone. Here the
// modules become one file for each set of programs that load them, in dist/src/chunks. Every module keeps its path as a file that
// exports what its chunk has, so nodes, tools and processes are found by their names, and all importers share one copy.
import { readdirSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { rolldown } from 'rolldown'

/**
 * What each program loads at its start; the process that reads files and a command load more with the file and the command. A module
 * that no program loads stays a file of its own.
 */
const programs = {
  child: /^src\/(.*\/child\/.*|features\/.*\.reader)\.js$/,
  client: /^src\/client\/index\.js$/,
  producer: /^src\/producer\/index\.js$/,
  command: /^src\/(cli|features\/.*\.(command|doctor|keys|process))\.js$/,
  called: /^src\/(project\/load-project|features\/.*\/feature|app\/cli\/(?!serve|standby|doctor\/).*)\.js$/,
  runtime:
    /^src\/(app\/cli\/serve|app\/open-runtime|(nodes|tools)\/.*\.(node|tool)|features\/(.*\/feature|.*\.(service|run-service|tool|node|retention|loop|metrics)))\.js$/,
  server: /^src\/(app\/http\/app|features\/.*\.(routes|resource))\.js$/,
}
/** They do their work as they are loaded, so nothing else may load them. */
const scripts = ['src/cli.js', 'src/files/child/main-process.js']
/** They are bundled with a library (bundle.mjs), which a chunk must not load with the rest. */
const bundled = ['src/graph/router.js', 'src/models/providers/openai/langchain-clients.js']

const root = resolve('dist')
const toId = (file) => join(root, file)
const files = readdirSync(root, { recursive: true }).filter(
  (file) =>
    /^(src|workers)\/.*\.js$/.test(file) && !file.startsWith('src/chunks/') && !bundled.includes(file),
)

/** The programs that load a module without asking for it by `import()`, by its id. */
const findLoaders = (graph) => {
  const loaders = new Map()
  for (const [program, starts] of Object.entries(programs)) {
    const reached = new Set(files.filter((file) => starts.test(file)).map(toId))
    if (reached.size === 0) throw new Error(`no module matches ${starts}; correct it for ${program}`)
    for (const id of reached) for (const next of graph.getModuleInfo(id)?.importedIds ?? []) reached.add(next)
    for (const id of reached) loaders.set(id, [...(loaders.get(id) ?? []), program])
  }
  for (const file of scripts) loaders.delete(toId(file))
  // one chunk of them would load the libraries of all formats, or commands, for one
  for (const [id, names] of loaders) if (['child', 'called'].includes(names.join())) loaders.delete(id)
  return loaders
}

let loaders
/** A chunk imports only chunks of more programs, so those of most are made first and there is no cycle. */
const groups = Object.keys(programs).map((_, at) => ({
  debugName: `of ${at + 1} programs`,
  priority: at + 1,
  name: (id, graph) => {
    loaders ??= findLoaders(graph)
    const names = loaders.get(id)
    return names?.length === at + 1 ? names.join('-') : null
  },
}))

/** `import.meta.url` is that of the module and not that of its chunk. */
const keepUrls = {
  name: 'keep-urls',
  transform: (code, id) => code.replaceAll('import.meta.url', `__urlOf("${relative(root, id)}")`),
  renderChunk: (code, { fileName }) =>
    code.replaceAll(/__urlOf\("([^"]+)"\)/g, (_, file) => {
      const path = relative(dirname(fileName), file)
      return `new URL("${path.startsWith('.') ? path : `./${path}`}", import.meta.url).href`
    }),
}

/** What is asked for by `import()` comes from its chunk: the file of a module is for those outside, who do not know its chunk. */
const askChunks = {
  name: 'ask-chunks',
  generateBundle(_options, bundle) {
    for (const chunk of Object.values(bundle))
      chunk.code = chunk.code?.replaceAll(/\bimport\("(\.[^"]+)"\)/g, (call, path) => {
        const file = join(dirname(chunk.fileName), path)
        const [, names, from] =
          /^export \{ ([^}]*) \} from "([^"]+)";\s*$/.exec(bundle[file]?.code ?? '') ?? []
        if (names === undefined) return call
        const source = relative(dirname(chunk.fileName), join(dirname(file), from))
        const fields = names.split(', ').map((name) => {
          const [inside, outside = inside] = name.split(' as ')
          return `${outside}: chunk.${inside}`
        })
        return `import("${source.startsWith('.') ? source : `./${source}`}").then((chunk) => ({ ${fields.join(', ')} }))`
      })
  },
}

const build = await rolldown({
  input: Object.fromEntries(files.map((file) => [file.slice(0, -'.js'.length), toId(file)])),
  platform: 'node',
  preserveEntrySignatures: 'strict',
  treeshake: false,
  checks: { ineffectiveDynamicImport: false },
  external: (id, importer = root) =>
    !/^[./]/.test(id) || bundled.includes(relative(root, resolve(dirname(importer), id))),
  plugins: [keepUrls, askChunks],
})
await build.write({
  dir: root,
  format: 'esm',
  keepNames: true,
  comments: false,
  entryFileNames: '[name].js',
  chunkFileNames: 'src/chunks/[name].js',
  codeSplitting: { groups },
})
await build.close()
