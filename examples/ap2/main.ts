import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { openSelf } from './config.ts'
import { roles, startAgent } from './server.ts'

/** `tsx examples/ap2/main.ts merchant --config merchant.json`: prints its address, then a line of JSON for each message. */
const { values, positionals } = parseArgs({ allowPositionals: true, options: { config: { type: 'string' } } })
const role = roles.find((one) => one === positionals[0])
if (!role || !values.config) throw new Error(`send ${roles.join(' or ')}, and --config FILE`)
const print = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)
const { url } = await startAgent(openSelf(JSON.parse(readFileSync(values.config, 'utf8'))), role, print)
print({ url })
