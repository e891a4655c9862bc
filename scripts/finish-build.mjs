// After tsc: removes what was built from sources that are gone (tools and nodes are found by suffix, so a stale one
// would go on running), makes the command executable, and then what makes a start quick: the bundles and the dump.
import { chmodSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

for (const file of readdirSync('dist', { recursive: true })) {
  const source = /^(.*)\.(js|js\.map|d\.ts)$/.exec(file)?.[1]
  if (source !== undefined && !existsSync(`${source}.ts`)) rmSync(join('dist', file))
}
chmodSync('dist/src/cli.js', 0o755)
await import('./bundle.mjs')
await import('./make-dump.mjs')
