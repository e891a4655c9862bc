// The database that an embedded Mason starts from: made once for its migrations and its PGlite, in some seconds.
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'

const { dumpPath, makeDump } = await import('../dist/src/infra/database/dump.js')
const path = await dumpPath()
for (const file of readdirSync('dist'))
  if (/^database-.*\.tar\.gz$/.test(file) && file !== basename(path)) rmSync(`dist/${file}`)
if (!existsSync(path)) {
  // all at once: another build, or a start, may be under way
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, await makeDump())
  renameSync(draft, path)
}
