import { startAdapter } from './adapter.ts'
import { openCompany } from './company.ts'

/** `tsx examples/card-adapter/main.ts`: the adapter with the settings of its environment; docs/payments.md, "Write a provider". */
const { ADAPTER_API_KEY, COMPANY_URL, COMPANY_API_KEY, ADAPTER_BOOKS } = process.env
if (!ADAPTER_API_KEY || !COMPANY_URL || !COMPANY_API_KEY || !ADAPTER_BOOKS)
  throw new Error('set ADAPTER_API_KEY, COMPANY_URL, COMPANY_API_KEY and ADAPTER_BOOKS (a file)')
const company = openCompany(COMPANY_URL, COMPANY_API_KEY)
const options = { apiKey: ADAPTER_API_KEY, file: ADAPTER_BOOKS, company }
const { url } = await startAdapter({ ...options, port: Number(process.env.PORT ?? 8095) })
process.stdout.write(`${url}\n`)
