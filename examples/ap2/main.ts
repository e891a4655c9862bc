import { createProcessor } from './card-processor.ts'
import { readConfig } from './config.ts'
import { createCredentialsProvider } from './credentials-provider.ts'
import { createMerchant } from './merchant.ts'
import { startAgent } from './server.ts'

/** `tsx examples/ap2/main.ts merchant --config merchant.json`: prints its address, then a line of JSON for each message. */
const agents = {
  merchant: createMerchant,
  'credentials-provider': createCredentialsProvider,
  'payment-processor': createProcessor,
}
const print = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)
const [name = ''] = process.argv.slice(2)
if (!Object.hasOwn(agents, name)) throw new Error(`name an agent: ${Object.keys(agents).join(', ')}`)
const { url } = await startAgent(readConfig(), agents[name as keyof typeof agents], print)
print({ url })
