import type { AddressInfo } from 'node:net'
import { createLog } from '../../src/app/cli/log.ts'
import { createApp } from '../../src/app/http/app.ts'
import { openRuntime } from '../../src/app/open-runtime.ts'
import type { Config } from '../../src/infra/config/config.ts'
import { noOpModels } from '../../test/support/no-op-models.ts'

/** `node api-process.js '<JSON of ApiTask>'`: the HTTP API alone, as `mason serve --role api` composes it, its log to stdout. */
export type ApiTask = { config: Config }

const { config } = JSON.parse(process.argv[2] ?? '') as ApiTask
const log = createLog(config.logLevel, process.stdout)
const runtime = await openRuntime(config, { models: noOpModels(), log })
const app = await createApp({ runtime, auth: 'off', logger: log })
await app.listen({ host: '127.0.0.1', port: 0 })
process.send?.({ port: (app.server.address() as AddressInfo).port })
// the parent process is gone
process.once('disconnect', () => process.exit(1))
