import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openRuntime } from '../../src/app/open-runtime.ts'
import { readConfig } from '../../src/app/read-config.ts'
import { createScrubber } from '../../src/infra/secrets/scrubber.ts'
import { openFolder } from '../support/file-samples.ts'

test('what an own tool throws as it is loaded shows no secret of the settings', async () => {
  const secret = 'sk-of-this-test-alone'
  await using folder = await openFolder()
  await writeFile(join(folder.path, 'shop.tool.js'), `throw new Error('no shop for ${secret}')\n`)
  const scrubber = createScrubber()
  const config = readConfig(
    { OPENAI_API_KEY: secret, DATA_DIR: join(folder.path, 'data') },
    { role: 'serve' },
  )
  const opened = openRuntime(config, { scrubber, toolFolders: [folder.path] })
  const error = await opened.then(() => null, String)
  expect(error).toContain('no shop for')
  expect(scrubber.text(error ?? '')).not.toContain(secret)
})
