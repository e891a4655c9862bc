import { expect, test } from 'vitest'
import { openTracing } from '../../src/app/open-tracing.ts'
import { readConfig } from '../../src/app/read-config.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import { noTracer } from '../../src/state/ports/tracer.ts'

test('without an endpoint a run has no tracer', async () => {
  const config = readConfig({}, { role: 'serve' })
  const telemetry = await openTracing(config, { clock: systemClock, log: silentLog })
  expect(telemetry.tracer).toBe(noTracer)
  expect(telemetry.counts()).toBeNull()
  await telemetry.close()
})
