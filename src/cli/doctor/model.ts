import { z } from 'zod'
import type { Config } from '../../infra/config.ts'
import { openDeadline } from '../../state/deadline.ts'
import type { Check, Finding } from '../doctor.ts'

const answerMs = 5_000

const listSchema = z.object({ data: z.array(z.object({ id: z.string() })) })

/** Whether the model server answers and takes the key. Asks for its list of models, which costs nothing. */
export const checkModel: Check = async ({ openai }, signal) => {
  if (openai === null)
    return [
      {
        ok: true,
        text: 'the built-in offline model: rules, no AI (neither OPENAI_API_KEY nor OPENAI_BASE_URL is set)',
      },
    ]
  const base = openai.baseUrl ?? 'https://api.openai.com/v1'
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/models`
  const shown = url.origin
  using deadline = openDeadline(answerMs, signal)
  try {
    const response = await fetch(url, {
      headers: openai.apiKey ? { Authorization: `Bearer ${openai.apiKey}` } : {},
      signal: deadline.signal,
    })
    return [judge(response.status, await response.text(), shown, openai)]
  } catch (error) {
    const { message, cause } = error as { message: string; cause?: { message?: string; code?: string } }
    return [
      {
        ok: false,
        text: `${shown} cannot be reached: ${cause?.message || cause?.code || message}`,
        remedy: 'check OPENAI_BASE_URL and the way there (proxy, firewall)',
      },
    ]
  }
}

const judge = (
  status: number,
  body: string,
  shown: string,
  openai: NonNullable<Config['openai']>,
): Finding => {
  if (status === 401 || status === 403)
    return {
      ok: false,
      text: `${shown} refuses the key (${status})`,
      remedy: openai.apiKey ? 'correct OPENAI_API_KEY' : 'set OPENAI_API_KEY',
    }
  if (status === 404 || status === 405)
    return { ok: true, text: `${shown} answers; it has no list of models to look ${openai.model} up in` }
  if (status >= 400)
    return {
      ok: false,
      text: `${shown} answers with ${status}`,
      remedy:
        status >= 500
          ? 'the server is in trouble: try again later'
          : 'check OPENAI_BASE_URL; it ends with /v1 as a rule',
    }
  const names = listed(body)
  if (names === null || names.includes(openai.model)) return { ok: true, text: `${openai.model} at ${shown}` }
  return {
    ok: false,
    text: `${shown} does not list the model ${openai.model}`,
    remedy: `set OPENAI_MODEL to one of: ${names.slice(0, 8).join(', ')}${names.length > 8 ? ', …' : ''}`,
  }
}

const listed = (body: string): string[] | null => {
  try {
    return listSchema.parse(JSON.parse(body)).data.map(({ id }) => id)
  } catch {
    return null
  }
}
