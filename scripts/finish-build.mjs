// After tsc: removes what was built from sources that are gone (tools and nodes are found by suffix, so a stale one
// would go on running), makes the command executable, and then what makes a start quick: the bundles, the chunks and the dump.
import { appendFileSync, chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'

for (const file of readdirSync('dist', { recursive: true })) {
  // what vite built
  if (file.startsWith('console')) continue
  const source = /^(.*)\.(js|js\.map|d\.ts)$/.exec(file)?.[1]
  const isStale = file.endsWith('.map') || (source !== undefined && !existsSync(`${source}.ts`))
  if (isStale) rmSync(join('dist', file))
}
// a program that imports the package has the services that other ports and features add to `Services`
const ports = 'dist/src/state/ports'
for (const folder of [ports, 'dist/src/features'])
  for (const file of readdirSync(folder, { recursive: true }))
    if (
      file.endsWith('.d.ts') &&
      /declare module '[^']*\/services\.ts'/.test(readFileSync(join(folder, file), 'utf8'))
    )
      appendFileSync(
        join(ports, 'services.d.ts'),
        `import './${relative(ports, join(folder, file)).replace(/\.d\.ts$/, '.ts')}'\n`,
      )
chmodSync('dist/src/cli.js', 0o755)
await import('./bundle.mjs')
await import('./chunk.mjs')
await import('./make-dump.mjs')
// whole, and of the sources at the time when it began: `isBuildNew` compares them
renameSync('dist/begun', 'dist/built')
