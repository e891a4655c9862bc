// The database that an embedded Mason starts from: made once for its migrations and its PGlite, in some seconds.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'

const { dumpDatabase, findSeedImagePath } = await import('../dist/src/infra/database/seed-image.js')
const { openEmbeddedDatabase } = await import('../dist/src/infra/database/embedded.js')
const { seedDatabase } = await import('../dist/src/app/seed-database.js')
const { findResponseFormats } = await import('../dist/src/app/find-early.js')
const { builtInCategories } = await import('../dist/src/models/schemas/catalog.js')

const path = await findSeedImagePath()
for (const file of readdirSync('dist'))
  if (/^database-.*\.tar\.gz$/.test(file) && file !== basename(path)) rmSync(`dist/${file}`)

// what the seed image is made from; its name says the rest
const parts = JSON.stringify([builtInCategories, (await findResponseFormats()).builtIn])
const stamp = createHash('sha256').update(parts).digest('hex')
const stampPath = 'dist/database.stamp'
const stampNow = existsSync(stampPath) ? readFileSync(stampPath, 'utf8') : null

if (!existsSync(path) || stampNow !== stamp) {
  const database = await openEmbeddedDatabase({})
  await seedDatabase(database)
  // all at once: another build, or a start, may be under way
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, await dumpDatabase(database.pglite))
  renameSync(draft, path)
  writeFileSync(stampPath, stamp)
  await database.close()
}
