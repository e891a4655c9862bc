import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { featureSources } from '../../src/app/features.generated.ts'
import { listFilesOfKinds } from '../../src/features/definition-files.ts'
import { createFileService } from '../../src/files/run-files.ts'
import { openDatabase } from '../../src/infra/database/open-database.ts'
import { openEgress } from '../../src/infra/egress/egress.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import type { PreparedFiles } from '../../src/state/ports/files.ts'
import type { Case, Variant } from '../case.ts'
import { writeCsv, writePdf } from '../support/big-files.ts'
import { openNoOpRuntime, submitRuns } from '../support/no-op-runs.ts'
import { peakOfChildren } from '../support/peak-memory.ts'
import type { Place } from '../support/place.ts'

/** One file of a run, as a turn makes it ready: a fresh process opens it, and what was found is stored. */
const prepare =
  (
    name: string,
    write: (path: string, place: Place) => Promise<void>,
    isWhole: (found: PreparedFiles, place: Place) => boolean,
  ): Variant =>
  async (place) => {
    const runtime = await openNoOpRuntime(place)
    const [run_id = ''] = await submitRuns(runtime, 1)
    await runtime.close()
    const filesRoot = await mkdtemp(join(tmpdir(), 'mason-bench-files-'))
    const database = await openDatabase(place.config, silentLog)
    const readers = listFilesOfKinds(featureSources, 'reader').map(({ path }) => path)
    const service = createFileService({ egress: openEgress(), storage: {}, filesRoot, readers })
    try {
      await write(join(filesRoot, name), place)
      const file = { name, type: '', local_path: '', mapping: { provider: 'local' as const, path: name } }
      const before = { tables: [], triedFiles: new Set<string>() }
      const since = performance.now()
      const mb = await peakOfChildren(async () => {
        const found = await service
          .openRunFiles(database, { tenant: 'default', run_id })
          .prepare([file], before, new AbortController().signal)
        if (!isWhole(found, place)) throw new Error(`${name} was not read whole: ${JSON.stringify(found)}`)
      })
      return { seconds: (performance.now() - since) / 1000, MB: mb }
    } finally {
      await service[Symbol.asyncDispose]()
      await database.close()
      await rm(filesRoot, { recursive: true, force: true })
    }
  }

const files: Case = {
  about: 'how soon a large file is ready to be asked about, and what the process that opens it takes',
  ours: {
    'PDF of 200 pages': prepare(
      'book.pdf',
      (path, place) => writePdf(path, place.count(200)),
      ({ documents }, place) => documents['book.pdf']?.pages === place.count(200),
    ),
    'CSV of 1,000,000 rows': prepare(
      'orders.csv',
      (path, place) => writeCsv(path, place.count(1_000_000)),
      ({ tables }, place) => tables['orders.csv']?.rows === place.count(1_000_000),
    ),
  },
}

export default files
