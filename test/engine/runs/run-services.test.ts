import { expect, test } from 'vitest'
import type { RunClaim } from '../../../src/engine/runs/claim.ts'
import {
  createServices,
  createVisitServices,
  type ServiceFactories,
} from '../../../src/engine/runs/run-services.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'

test('what asks models is made for each visit, which pays for it also beside another one; the rest once a run', () => {
  const names = ['models', 'embeddings', 'media', 'memories', 'files', 'blobs', 'clock']
  const factories = Object.fromEntries(
    names.map((name) => [name, (_run: unknown, _sql: unknown, visit?: object) => ({ name, visit })]),
  ) as unknown as ServiceFactories
  const [claim, sql] = [{} as RunClaim, {} as Sql]
  const ofRun = createServices(factories, claim, sql)
  const servicesFor = createVisitServices(factories, claim, sql)
  const [one, other] = [
    { id: 'v1', tool: null },
    { id: 'v2', tool: 'recall' },
  ]
  for (const visit of [one, other]) {
    const { models, embeddings, media, memories, ...rest } = servicesFor(ofRun, visit)
    for (const service of [models, embeddings, media, memories]) expect(service).toMatchObject({ visit })
    for (const [name, service] of Object.entries(rest)) expect(service).toBe(Reflect.get(ofRun, name))
  }
})
