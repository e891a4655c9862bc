import { type RunningProcess, startMason } from '../../examples/served-demo/processes.ts'
import { paymentUrlOf } from './served-logins.ts'

/** The settings of a Mason whose model is that of `examples/buy-demo`, at this address. */
export const shopperSettings = (url: string) => ({
  OPENAI_BASE_URL: `${url}/v1`,
  OPENAI_API_KEY: 'none',
  OPENAI_MODEL: 'scripted',
})

/** `mason payments` on the database at this address, with its own login and key. */
export const startPayments = (
  databaseUrl: string,
  key: string,
  settings: NodeJS.ProcessEnv,
): Promise<RunningProcess> =>
  startMason(
    ['payments'],
    { ...settings, MASON_PAYMENT_DATABASE_URL: paymentUrlOf(databaseUrl), MASON_PAYMENT_KEY: key },
    /carries out orders|is ready/,
  )
