// Files that load a library of hundreds of modules: each becomes one with it, which a process reads five times quicker, and what
// both load is one more. Our own modules stay outside, so that all share one copy of them.
import { build } from 'esbuild'

/** Our own files are shared by all: they stay outside. */
const oursOutside = {
  name: 'ours-outside',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^\.\.?\// }, ({ path, kind, importer }) =>
      kind === 'entry-point' || importer.includes('node_modules') ? undefined : { path, external: true },
    ),
}

/** LangSmith would trace each task over a connection of its own; making its records is a third of what LangGraph costs a run. */
const noLangSmith = {
  name: 'no-langsmith',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^langsmith(\/|$)/ }, () => ({ path: 'langsmith', namespace: 'none' }))
    onLoad({ filter: /./, namespace: 'none' }, () => ({
      contents: `export class Client {}
        export class RunTree { async postRun() {} async patchRun() {} }
        export const isRunTree = () => false, isTraceableFunction = isRunTree
        export const getCurrentRunTree = () => {}, getDefaultProjectName = () => ''
        export const convertToDottedOrderFormat = () => ({ dottedOrder: '', microsecondPrecisionDatestring: '' })`,
    }))
  },
}

await build({
  entryPoints: ['dist/src/graph/router.js', 'dist/src/models/providers/openai/langchain-clients.js'],
  outdir: 'dist/src',
  outbase: 'dist/src',
  chunkNames: 'chunks/langchain',
  splitting: true,
  allowOverwrite: true,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // a schema of ours must be one of theirs
  external: ['zod', 'zod/*'],
  plugins: [oursOutside, noLangSmith],
  logLevel: 'warning',
})
