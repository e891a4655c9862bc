import { addresses } from '../addresses.ts'
import { hostileAnswers } from '../hostile-answers.ts'
import { type HttpAnswer, type HttpInput, type Input, json, type RunInput, type Target } from '../input.ts'

/** Each hostile answer, by each way in which a vendor is called; and addresses that Mason must not call. */
export const vendors = (target: Target): Input[] => [
  ...Object.keys(hostileAnswers).flatMap((name, at) => answersOf(name, at)),
  ...endpoints(target),
  ...fetches(target),
]

/** The alias of the model that answers like this. The models of protocol http read with OpenAI's own format. */
export const aliasOf = (at: number, protocol: 'openai' | 'http'): string => `hostile-${protocol}-${at}`

/** A call has this long by its endpoint's timeouts, and a run by its limits. */
export const callMs = 2500
const runMs = 4000
const slackMs = 15_000

const longest = 100_000
const isShort = ({ text }: HttpAnswer): string | null =>
  text.length > longest && !text.includes('"choices"') ? `an error of ${text.length} characters` : null

const answersOf = (name: string, at: number): Input[] => {
  const messages = [{ role: 'user', content: 'hello' }]
  const chat = (protocol: 'openai' | 'http', stream: boolean): HttpInput => ({
    kind: 'http',
    name: `${name}, to ${stream ? 'a stream of ' : ''}the endpoint by ${protocol}`,
    as: 'mallory',
    method: 'POST',
    path: '/v1/chat/completions',
    body: json({ model: aliasOf(at, protocol), messages, stream }),
    status: 'answered',
    answer: at,
    withinMs: callMs + slackMs,
    holds: isShort,
  })
  const run = (protocol: 'openai' | 'http'): RunInput => ({
    kind: 'run',
    name: `${name}, to a run by ${protocol}`,
    turns: [
      {
        prompt: 'hello',
        models: { planner: aliasOf(at, protocol) },
        limits: { timeout_ms: runMs, max_steps: 30 },
      },
    ],
    withinMs: runMs + 2 * slackMs,
    answer: at,
    parts: [
      {
        name: `${name}, to a run by ${protocol}`,
        holds: ({ run: { status, error } }) =>
          (status !== 'completed' && status !== 'failed') ||
          error?.code === 'internal' ||
          (error?.message.length ?? 0) > 4000
            ? `the run is ${status}: ${JSON.stringify(error).slice(0, 300)}`
            : null,
      },
    ],
  })
  return [chat('openai', false), chat('openai', true), chat('http', true), run('openai'), run('http')]
}

/** The addresses as those of an endpoint. One that is plainly private says by itself that an admin means it. */
const endpoints = ({ hostile: { vendor_id } }: Target): HttpInput[] =>
  addresses.flatMap(({ host, plain }) =>
    ['http', 'https'].map((scheme): HttpInput => {
      const base_url = `${scheme}://${host}:8443/v1`
      return {
        kind: 'http',
        name: `an endpoint at ${base_url}`,
        as: 'admin',
        method: 'POST',
        path: `/admin/v1/vendors/${vendor_id}/endpoints`,
        body: json({ name: base_url, base_url, protocol: 'openai', ...(plain && { allow_private: false }) }),
        status: [422],
        at: '/base_url',
      }
    }),
  )

/** The addresses as those of a run's files. */
const fetches = ({ hostile: { url } }: Target): RunInput[] => {
  const { port } = new URL(url)
  const urls = [
    ...addresses.map(({ host }) => `http://${host}:${port}/caught/a.txt`),
    ...[
      `http://user:pass@127.0.0.1:${port}/caught`,
      `http://127.0.0.1:${port}\\@example.org/caught`,
      `${url}/to%20127.0.0.1`,
    ],
  ]
  const files = urls.map((address, at) => ({ name: `${at}.txt`, type: 'text/plain', url: address }))
  return [
    {
      kind: 'run',
      name: 'files at addresses of this machine',
      turns: [{ prompt: 'Read them.', files }],
      withinMs: 60_000,
      parts: files.map(({ name, url: address }) => ({
        name: `a file at ${address}`,
        holds: ({ state }) => {
          const { documents, tables, other_files } = state?.preprocessed_files ?? {
            documents: {},
            tables: {},
            other_files: {},
          }
          const file = other_files[name] as { readable?: boolean } | undefined
          return !documents[name] && !tables[name] && file?.readable === false
            ? null
            : `was read: ${JSON.stringify(file ?? documents[name])?.slice(0, 200)}`
        },
      })),
    },
  ]
}
