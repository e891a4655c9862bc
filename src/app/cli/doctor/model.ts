import { safeParse } from 'secure-json-parse'
import { z } from 'zod'
import type { Config } from '../../../infra/config/config.ts'
import { openDeadline } from '../../../state/deadline.ts'
import { findInProcessModel } from '../../early-services.ts'
import { type DoctorCheck, type DoctorFinding, fail, pass } from './check.ts'

const responseTimeoutMs = 5_000

const listSchema = z.object({ data: z.array(z.object({ id: z.string() })) })

/** Whether the model server responds and accepts the key. Requests its list of models, which costs nothing. */
export const checkModel: DoctorCheck = async (config, signal) => {
  const { openai, database } = config
  if (openai === null && database.kind === 'postgres') return [pass('none in the settings')]
  if (openai === null && !(await findInProcessModel(config)))
    return [pass('none', 'set OPENAI_API_KEY or OPENAI_BASE_URL, or add a model: mason models add')]
  if (openai === null)
    return [pass('built-in offline model: rules, no AI (neither OPENAI_API_KEY nor OPENAI_BASE_URL is set)')]
  const base = openai.baseUrl ?? 'https://api.openai.com/v1'
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}/models`
  const origin = url.origin
  using deadline = openDeadline(responseTimeoutMs, signal)
  try {
    const response = await fetch(url, {
      headers: openai.apiKey ? { Authorization: `Bearer ${openai.apiKey}` } : {},
      signal: deadline.signal,
    })
    return [toModelFinding(response.status, await response.text(), origin, openai)]
  } catch (error) {
    const { message, cause } = error as { message: string; cause?: { message?: string; code?: string } }
    return [
      fail(
        `${origin} cannot be reached: ${cause?.message || cause?.code || message}`,
        'correct OPENAI_BASE_URL, or check the network (proxy, firewall)',
      ),
    ]
  }
}

const toModelFinding = (
  status: number,
  body: string,
  origin: string,
  openai: NonNullable<Config['openai']>,
): DoctorFinding => {
  if (status === 401 || status === 403)
    return fail(
      `${origin} refuses the key (${status})`,
      openai.apiKey ? 'correct OPENAI_API_KEY' : 'set OPENAI_API_KEY',
    )
  if (status === 404 || status === 405)
    return pass(`${origin} responds, but lists no models to look up ${openai.model}`)
  if (status >= 400)
    return fail(
      `${origin} responds with ${status}`,
      status >= 500
        ? 'try again later: the server has a problem'
        : 'correct OPENAI_BASE_URL; it usually ends with /v1',
    )
  const names = listSchema.safeParse(safeParse(body)).data?.data.map(({ id }) => id)
  if (names === undefined || names.includes(openai.model)) return pass(`${openai.model} at ${origin}`)
  return fail(
    `${origin} does not list the model ${openai.model}`,
    `set OPENAI_MODEL to one of: ${names.slice(0, 8).join(', ')}${names.length > 8 ? ', …' : ''}`,
  )
}
