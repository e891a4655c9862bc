import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { submitAndFollowRun } from '../../../src/app/cli/run.ts'
import { createScrubber } from '../../../src/infra/secrets/scrubber.ts'
import { openFolder } from '../../support/file-samples.ts'

test('mason run says why it takes no file of a name that the state cannot hold', async () => {
  await using folder = await openFolder()
  const file = join(folder.path, '__proto__')
  await writeFile(file, 'text')
  const run = submitAndFollowRun(
    'Read it',
    { file: [file] },
    { DATA_DIR: folder.path },
    createScrubber(),
    undefined,
  )
  await expect(run).rejects.toMatchObject({
    message: expect.stringContaining('__proto__: a file cannot have this name'),
    remedy: 'give it another name',
  })
})
