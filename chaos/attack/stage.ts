import { fileURLToPath } from 'node:url'
import { type Child, startChild } from '../child.ts'
import { promptOf } from '../fleet/job.ts'
import { aliasOf, callMs } from './families/vendors.ts'
import { hostileAnswers } from './hostile-answers.ts'
import type { Caller, Target } from './input.ts'

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

export type ScriptedVendor = Child<{ event: 'ready'; port: number; control: number }>
export type HostileVendor = Child<{ event: 'ready'; port: number }>

export const startVendors = async () => {
  const scripted: ScriptedVendor = startChild(script('./scripted-vendor-process.ts'), {})
  const hostile: HostileVendor = startChild(script('./hostile-vendor-process.ts'), {})
  const [ready, { port }] = await Promise.all([scripted.next('ready'), hostile.next('ready')])
  return {
    pids: [scripted.pid, hostile.pid],
    modelUrl: `http://127.0.0.1:${ready.port}/v1`,
    controlUrl: `http://127.0.0.1:${ready.control}`,
    hostileUrl: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const child of [scripted, hostile]) child.signal('SIGKILL')
      await Promise.all([scripted.ended, hostile.ended])
    },
  }
}

export type Vendors = Awaited<ReturnType<typeof startVendors>>

// biome-ignore lint/suspicious/noExplicitAny: a harness looks into answers of every shape
export type Call = (method: string, path: string, body?: object, token?: string) => Promise<any>

const secret = 'quince-orchard-heron'
const vendorKey = 'sk-attack-vendor-key-51c9'

/** The businesses with their tokens, what the victim has, and the vendors that answer with hostility. */
export const setStage = async (
  url: string,
  adminToken: string,
  { hostileUrl, controlUrl }: Vendors,
): Promise<{ target: Target; call: Call; bystander: string }> => {
  const call: Call = async (method, path, body, token = adminToken) => {
    const reply = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await reply.text()
    if (!reply.ok) throw new Error(`${method} ${path} answered ${reply.status}: ${text.slice(0, 500)}`)
    return text.startsWith('{') ? JSON.parse(text) : text
  }
  const tokenOf = async (business_id: string, ...roles: string[]): Promise<string> =>
    (await call('POST', '/admin/v1/tokens', { business_id, roles, label: 'attack' })).token
  const [bystander, victim, mallory, flooder, reader, submitter] = [
    await tokenOf('bystander', 'admin'),
    await tokenOf('victim', 'admin'),
    await tokenOf('mallory', 'admin'),
    // its stalled bodies use up the memory of its own token only
    await tokenOf('mallory', 'admin'),
    await tokenOf('mallory', 'read'),
    await tokenOf('mallory', 'submit'),
  ]
  const tokens: Record<Caller, string> = {
    admin: adminToken,
    mallory,
    flooder,
    reader,
    submitter,
    stranger: 'x'.repeat(40),
    anonymous: '',
  }
  const vendor_id = await openHostile(call, hostileUrl, 'echo', [
    { name: 'echo', protocol: 'openai', category: 'text-to-image' },
  ])
  const document = await call('GET', '/openapi.json')
  return {
    call,
    bystander,
    target: {
      url,
      port: Number(new URL(url).port),
      tokens,
      victim: await fillVictim(call, victim, controlUrl),
      secret,
      vendorKey,
      hostile: { url: hostileUrl, vendor_id },
      document,
    },
  }
}

/** A vendor with its key, and endpoints and models whose answers are those of `place`. */
const openHostile = async (
  call: Call,
  hostileUrl: string,
  place: string,
  models: { name: string; protocol: 'openai' | 'http'; category: string; response_format_id?: string }[],
): Promise<string> => {
  const { id } = await call('POST', '/admin/v1/vendors', { name: `hostile: ${place}` })
  await call('POST', `/admin/v1/vendors/${id}/keys`, { label: 'k', secret: vendorKey })
  for (const { protocol, ...model } of models) {
    const endpoint = await call('POST', `/admin/v1/vendors/${id}/endpoints`, {
      name: protocol,
      protocol,
      base_url: `${hostileUrl}/${encodeURIComponent(place)}/v1${protocol === 'http' ? '/chat/completions' : ''}`,
      timeouts: { first_byte_ms: 1500, idle_ms: 1500, total_ms: callMs },
    })
    await call('POST', `/admin/v1/vendors/${id}/models`, {
      upstream_name: 'm',
      endpoint_id: endpoint.id,
      ...model,
    })
  }
  return id
}

/** A vendor for each of these answers, so that one that is refused a key does not shield the others. */
export const openHostileVendors = async (
  call: Call,
  { hostile }: Target,
  answers: ReadonlySet<number>,
): Promise<void> => {
  const { data } = await call('GET', '/admin/v1/response-formats?limit=200')
  const response_format_id = data.find(({ name }: { name: string }) => name === 'openai-chat')?.id
  const waiting = [...answers]
  const names = Object.keys(hostileAnswers)
  const open = async (): Promise<void> => {
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop())
      await openHostile(call, hostile.url, names[at] ?? '', [
        { name: aliasOf(at, 'openai'), protocol: 'openai', category: 'text' },
        { name: aliasOf(at, 'http'), protocol: 'http', category: 'text', response_format_id },
      ])
  }
  await Promise.all([open(), open(), open(), open()])
}

/** Runs, a session with files and results, a memory: each with the secret in it. */
const fillVictim = async (call: Call, token: string, controlUrl: string): Promise<Target['victim']> => {
  const user = 'victim-user'
  const session = 'victim-session'
  const key = 'victim-order-1'
  const rows = Array.from({ length: 3000 }, (_, n) => `${secret} ${n}`).join('\n')
  const submit = (body: object) =>
    call(
      'POST',
      '/v1/runs/wait',
      { user_id: user, session_id: session, metadata: { note: secret }, ...body },
      token,
    )
  const run = await submit({
    prompt: promptOf(`${secret}.a`, ['calculate']),
    files: [{ name: 'secret.txt', type: 'text/plain', content_base64: Buffer.from(rows).toString('base64') }],
  })
  await submit({ prompt: promptOf(`${secret}.b`, ['calculate']) })
  const content = `I prefer the ${secret} tea.`
  const kept = { tool_calls: [{ name: 'remember', arguments: { content, kind: 'preference' } }] }
  // rules decide: what the user plainly says is kept
  const play = { planner: [kept, { text: 'Done.' }], distill: [{ text: 'no JSON' }] }
  await fetch(`${controlUrl}/victim`, { method: 'PUT', body: JSON.stringify({ play, markers: [] }) })
  await submit({ prompt: `${content}\n\nplay-victim~`, session_id: 'victim-talk' })
  const state = JSON.stringify(await call('GET', `/v1/runs/${run.id}/state?inline=false`, undefined, token))
  const blob = /blob:([0-9a-f]{64})/.exec(state)?.[1] ?? ''
  const page = await call('GET', `/v1/runs?user_id=${user}&limit=1`, undefined, token)
  const { data } = await call('GET', `/v1/memories?user_id=${user}`, undefined, token)
  if (!blob || !data[0] || !page.next_cursor)
    throw new Error(`the victim lacks something: ${JSON.stringify({ blob, data, page })}`)
  return { run: run.id, session, user, memory: data[0].id, blob, key, cursor: page.next_cursor }
}

/** All that the victim has, as the victim sees it. */
export const readVictim = async (call: Call, { victim }: Target): Promise<string> => {
  const parts = [
    `/v1/runs/${victim.run}`,
    `/v1/sessions/${victim.session}`,
    `/v1/runs/${victim.run}/state`,
    `/v1/memories/export?user_id=${victim.user}`,
    `/v1/runs?user_id=${victim.user}`,
  ]
  const seen = await Promise.all(
    parts.map((path) => call('GET', `${path}${path.includes('?') ? '&' : '?'}business_id=victim`)),
  )
  return JSON.stringify(seen)
}
