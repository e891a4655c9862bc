import { expect, test } from 'vitest'
import { runProcess } from '../../../src/app/cli/features/run-process.ts'
import { createScrubber } from '../../../src/infra/secrets/scrubber.ts'

test('a process that no feature has is refused before any setting is read', async () => {
  await expect(runProcess('nowhere', {}, createScrubber())).rejects.toMatchObject({
    code: 'invalid_settings',
    message: 'no feature has the process "nowhere"',
  })
})
