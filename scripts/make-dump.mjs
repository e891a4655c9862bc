// The database that an embedded Mason starts from: made once for its migrations and its PGlite, in some seconds.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'

const { dumpOf, dumpPath } = await import('../dist/src/infra/database/dump.js')
const { openEmbedded } = await import('../dist/src/infra/database/embedded.js')
const { giveHeadStart } = await import('../dist/src/infra/database/head-start.js')
const { builtInFormats } = await import('../dist/src/infra/formats/built-in.js')
const { builtInCategories } = await import('../dist/src/state/registry/catalog.js')

const path = await dumpPath()
for (const file of readdirSync('dist'))
  if (/^database-.*\.tar\.gz$/.test(file) && file !== basename(path)) rmSync(`dist/${file}`)

// what the head start is made from; its name says all else
const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
const parts = JSON.stringify([dependencies.bullmq, builtInCategories, builtInFormats()])
const stamp = createHash('sha256').update(parts).digest('hex')
const stampPath = 'dist/database.stamp'
const stampNow = existsSync(stampPath) ? readFileSync(stampPath, 'utf8') : null

if (!existsSync(path) || stampNow !== stamp) {
  const database = await openEmbedded({})
  await giveHeadStart(database)
  // all at once: another build, or a start, may be under way
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, await dumpOf(database.pglite))
  renameSync(draft, path)
  writeFileSync(stampPath, stamp)
  await database.close()
}
