import type { FuzzJob } from '../../fuzz/jobs.ts'
import type { JobInput, Target } from '../input.ts'

/** Jobs that any client of Redis could put there: broken, huge, forged, doubled, or of businesses that are none. */
export const queue = (target: Target): JobInput[] =>
  [...broken(), ...named(), ...forged(target), ...doubled()].map((job, at) => ({
    kind: 'job',
    name: `${job.queue}: ${job.what}`,
    job: { ...job, idTail: `${job.idTail}-${at}` },
  }))

const day = 86_400_000
/** Not due for a day: that it was admitted is what counts. */
const valid = { prompt: 'What is 2 + 2?', user_id: 'u1', business_id: 'mallory', delay_ms: day }
const job = (what: string, data: unknown, fate: FuzzJob['fate'], more: Partial<FuzzJob> = {}): FuzzJob => ({
  queue: 'mason-runs',
  what,
  name: 'run',
  idTail: '',
  data: Buffer.isBuffer(data) ? data : Buffer.from(typeof data === 'string' ? data : JSON.stringify(data)),
  options: {},
  fate,
  ...more,
})

const broken = (): FuzzJob[] => {
  const texts: Record<string, string | Buffer> = {
    nothing: '',
    'a bracket': '{',
    null: 'null',
    'a list': '[1]',
    'a text': '"x"',
    'a number': '7',
    'no JSON': 'prompt=x',
    'invalid UTF-8': Buffer.from([0x7b, 0xff, 0x7d]),
    'a NUL': '\u0000',
    'deep lists': `{"metadata":${'['.repeat(90_000)}${']'.repeat(90_000)}}`,
    'only brackets': '['.repeat(1_000_000),
    '100,000 fields': `{${Array.from({ length: 100_000 }, (_, n) => `"k${n}":1`).join()}}`,
    '34 MB': JSON.stringify({ ...valid, prompt: 'x'.repeat(34_000_000) }),
    'a prompt of 2 MB': JSON.stringify({ ...valid, prompt: 'x'.repeat(2_000_000) }),
    'a __proto__': `{"__proto__":{"admin":true},${JSON.stringify(valid).slice(1)}`,
    'files of 33 MB': JSON.stringify({
      ...valid,
      files: [{ name: 'a', type: 't', content_base64: 'AAAA'.repeat(8_500_000) }],
    }),
  }
  return Object.entries(texts).map(([what, data]) => job(what, data, 'rejected'))
}

/** Each field with what it may not be. */
const named = (): FuzzJob[] => {
  const wrong: Record<string, readonly unknown[]> = {
    prompt: ['', 7, null, [], {}, 'x'.repeat(1_000_001)],
    user_id: ['', 'a b', '__proto__', '../x', 'x'.repeat(201), 7, null, 'a\u0000'],
    business_id: ['', '_mason', '__proto__', '../victim', 'a b', 'x'.repeat(201), 7, null, [], { $ne: 1 }],
    session_id: ['', 'a/b', '__proto__', 7, 'x'.repeat(201)],
    files: [
      {},
      [1],
      [{ name: 'a' }],
      [{ name: '../a', type: 't', content_base64: '' }],
      Array(101).fill({ name: 'a', type: 't', content_base64: 'aa==' }),
    ],
    output: [1, { structure: [{}] }, { zz: 1 }, { style: 'x'.repeat(2001) }],
    limits: [
      { max_steps: 1 },
      { max_steps: 1e9 },
      { timeout_ms: 0 },
      { timeout_ms: -1 },
      { max_cost: -1 },
      { max_tokens: 0.5 },
      { zz: 1 },
    ],
    priority: [-1, 101, 0.5, '5', 1e308],
    delay_ms: [-1, 30 * day + 1, 2 ** 53, '1', 0.5],
    tools: ['calculate', [1], Array(201).fill('x')],
    metadata: [1, 'x', []],
    webhook_url: ['http://127.0.0.1/'],
    zz: [1],
    id: ['run_x'],
    tenant: ['victim'],
  }
  return Object.entries(wrong).flatMap(([name, values]) =>
    values.map((value) =>
      job(`${name} ${JSON.stringify(value).slice(0, 40)}`, { ...valid, [name]: value }, 'rejected', {
        at: `/${name}`,
      }),
    ),
  )
}

/** Wake-ups for runs of others, jobs under other names, and options that mean to rule over how a job is kept. */
const forged = ({ victim }: Target): FuzzJob[] => {
  const wakeUps = [
    { run_id: victim.run, business_id: 'mallory' },
    { run_id: victim.run, business_id: 'victim' },
    { run_id: victim.run },
    { run_id: '../x', business_id: 'victim' },
    { run_id: 'run_x', business_id: '__proto__' },
    { run_id: ['x'], business_id: {} },
    { run_id: 'x'.repeat(100_000), business_id: 'victim' },
    {},
    null,
    [],
    { run_id: victim.run, business_id: 'victim', epoch: 99, status: 'completed' },
  ]
  return [
    ...wakeUps.map((data) =>
      job(`a wake-up ${JSON.stringify(data).slice(0, 60)}`, data, 'either', { queue: 'wake-ups' }),
    ),
    ...['', 'Run', 'run ', '__proto__', 'x'.repeat(10_000)].map((name) =>
      job(`named ${name.slice(0, 10)}`, valid, 'rejected', { name }),
    ),
    ...[
      { attempts: 0 },
      { attempts: -3, backoff: -1 },
      { priority: 2_000_000 },
      { lifo: true },
      { removeOnComplete: false, removeOnFail: false },
      { keepLogs: 0 },
    ].map((options) => job(`with ${JSON.stringify(options)}`, valid, 'admitted', { options })),
    ...['\u0000', ' ', '/../..', '💩', '%00', 'x'.repeat(300), '__proto__', '"'].map((idTail) =>
      job(`with the id ${idTail.slice(0, 8)}`, valid, 'either', { idTail }),
    ),
  ]
}

/** The same content many times, each under an id of its own: each is one run. */
const doubled = (): FuzzJob[] => Array.from({ length: 40 }, () => job('a valid job', valid, 'admitted'))
