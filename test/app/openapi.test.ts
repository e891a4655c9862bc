// backends: either

import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { generate, HttpClient } from 'openapi-typescript-codegen'
import { expect, onTestFinished } from 'vitest'
import { intakeRef } from '../../src/features/intake/intake.ref.ts'
import { askConsent } from '../../src/features/payments/consent/consents.ts'
import { startAgentServer } from '../support/agent-servers.ts'
import { createAuthenticator } from '../support/authenticator.ts'
import { unique } from '../support/backend.ts'
import { newCart, newWaitingRun, trustParty } from '../support/consents.ts'
import { openFolder } from '../support/file-samples.ts'
import { deliver } from '../support/intake.ts'
import { adminToken, closing, runtimeTest } from '../support/integration-test.ts'
import { parties } from '../support/mandate-parties.ts'
import { startMediaVendor } from '../support/media-vendor.ts'
import { listBodies, responseSchema } from '../support/openapi.ts'
import { asProxy, newEnrolment, readPage, site } from '../support/passkeys.ts'
import { addPayment, carryOut, openExecutorDatabase, publishPaymentKeys } from '../support/payments.ts'
import { deadline } from '../support/test-runtime.ts'
import { addVendor } from '../support/vendors.ts'

const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, { config: { publicUrl: site.origin } })
  .extend('vendor', { scope: 'file' }, closing(startMediaVendor))
  .extend(
    'agent',
    { scope: 'file' },
    closing(() => startAgentServer('1.0')),
  )

/** Ids in the path, fields of the example that name what this test has made, and headers. */
type Step = {
  path?: Record<string, string>
  fields?: Record<string, unknown>
  headers?: Record<string, string>
}
type Made = { id: string }

/** Routes of admins that change nothing: what they answer, or call a model for, is in no row. */
const changesNothing = [
  'POST /admin/v1/vendors/{vendor_id}/keys/find',
  'POST /admin/v1/response-formats/{id}/test',
  'POST /admin/v1/vendors/{vendor_id}/models/{id}/test',
]

test('every example of the OpenAPI document is a request that the server takes, with a response as documented', async ({
  runtime,
  database,
  elsewhere,
  backend,
  server,
  model,
  vendor,
  agent,
}) => {
  const api = runtime.of('default')
  vendor.fail
    .set('/v1/chat/completions', {
      status: 200,
      body: { choices: [{ message: { role: 'assistant', content: 'Hello!' }, finish_reason: 'stop' }] },
    })
    .set('/v1/embeddings', { status: 200, body: { data: [{ index: 0, embedding: [1, 2] }] } })
  const categories = {
    painter: 'text-to-image',
    speaker: 'text-to-speech',
    embedder: 'embedding',
  }
  const studios = Object.entries(categories).map(([name, category]) =>
    addVendor(runtime, unique(name), vendor.baseUrl, { keys: [name], models: [name], model: { category } }),
  )
  const own = await addVendor(runtime, unique('own'), vendor.baseUrl, { keys: ['own'], models: [] })
  await Promise.all(studios)
  const ownVendor = { vendor_id: own.vendor ?? '' }
  const admitJob = (data: object) =>
    deliver(runtime.features.get(intakeRef).jobs, database, unique('job'), data)
  const listRejected = async (): Promise<Made[]> =>
    (await server.call('GET', '/admin/v1/rejected-jobs', { token: adminToken })).body.data

  const made = new Map<string, Made>()
  const idOf = (operation: string): string => made.get(operation)?.id ?? ''
  const ofNew = (operation: string) => (): Step => ({ path: { id: idOf(operation) } })
  const inNewVendor = (operation?: string) => (): Step => ({
    path: { vendor_id: idOf('POST /admin/v1/vendors'), ...(operation && { id: idOf(operation) }) },
  })
  const newKey = 'POST /admin/v1/vendors/{vendor_id}/keys'
  const newEndpoint = 'POST /admin/v1/vendors/{vendor_id}/endpoints'
  const newModel = 'POST /admin/v1/vendors/{vendor_id}/models'
  const ofNewModel = (): Step => ({ path: { ...ownVendor, id: idOf(newModel) } })
  const newAgent = 'POST /admin/v1/businesses/{business_id}/agents'
  const newFormat = 'POST /admin/v1/response-formats'
  const resource = (name: string) => ({
    [`POST /admin/v1/${name}`]: (): Step => ({}),
    [`PATCH /admin/v1/${name}/{id}`]: ofNew(`POST /admin/v1/${name}`),
  })

  const executor = openExecutorDatabase(backend, database, 2)
  onTestFinished(() => executor.close())
  const ofPayment = async (status: string): Promise<Step> => {
    const id = await addPayment(executor, status)
    carried.push(carryOut(executor, id))
    return { path: { id } }
  }
  const carried: Promise<unknown>[] = []
  await trustParty(server, parties.merchant, 'merchant')
  const askForConsent = async (): Promise<string> => {
    const cart = await newCart()
    const run_id = await newWaitingRun(elsewhere, 'default', 'ann')
    const bound = { tenant: 'default', user_id: 'ann', run_id, payment_id: unique('pay') }
    const ask = { ...bound, audience: site.origin, lifetimeMs: 60_000 }
    return (await elsewhere.asBusiness('default', (sql) => askConsent(sql, cart, ask))).payment_id
  }

  /** In this order: later ones use what earlier ones made, and the first run finds the script. */
  const steps: Record<string, () => Step | Promise<Step>> = {
    'POST /v1/runs/{id}/input': async () => {
      const question = { name: 'ask_user', arguments: { question: 'Shall I?' } }
      model.script({ planner: [{ tool_calls: [question] }, { text: 'Thank you.' }] } as never)
      const { id, input_request } = await runtime.complete({ prompt: 'Ask me', session_id: unique('s') })
      return { path: { id }, fields: { request_id: input_request?.id } }
    },
    ...resource('businesses'),
    'PATCH /admin/v1/businesses/{id}/webhook': ofNew('POST /admin/v1/businesses'),
    'PUT /admin/v1/businesses/{id}/agent-card': () => ({ path: { id: 'default' } }),
    'POST /a2a/agents/{business_id}': () => ({ path: { business_id: 'default' } }),
    'POST /a2a/agents/{business_id}/{operation}': () => ({
      path: { business_id: 'default', operation: 'message:send' },
    }),
    [newAgent]: () => ({ path: { business_id: 'default' }, fields: { card_url: agent.url } }),
    [`PATCH ${newAgent.slice(5)}/{id}`]: () => ({ path: { business_id: 'default', id: idOf(newAgent) } }),
    ...resource('tokens'),
    ...resource('operators'),
    ...resource('users'),
    ...resource('vendors'),
    [newEndpoint]: inNewVendor(),
    [`PATCH ${newEndpoint.slice(5)}/{id}`]: inNewVendor(newEndpoint),
    [newKey]: inNewVendor(),
    [`PATCH ${newKey.slice(5)}/{id}`]: inNewVendor(newKey),
    [`${newKey}/find`]: inNewVendor(),
    [`${newKey}/{id}/rotate`]: inNewVendor(newKey),
    [newModel]: () => ({ path: ownVendor, fields: { endpoint_id: own.endpoint } }),
    [`PATCH ${newModel.slice(5)}/{id}`]: ofNewModel,
    [`${newModel}/{id}/test`]: ofNewModel,
    ...resource('categories'),
    ...resource('routes'),
    'POST /admin/v1/grants': () => ({ fields: { key_id: idOf(newKey) } }),
    'PATCH /admin/v1/grants/{id}': ofNew('POST /admin/v1/grants'),
    ...resource('response-formats'),
    [`${newFormat}/{id}/test`]: ofNew(newFormat),
    ...resource('scenarios'),
    ...resource('schedules'),
    ...resource('budgets'),
    'POST /admin/v1/trust': () => ({}),
    'POST /admin/v1/payments/{id}/refund': () => ofPayment('succeeded'),
    'POST /admin/v1/payments/{id}/settle': () => ofPayment('unknown'),
    'POST /admin/v1/providers': async () => {
      await publishPaymentKeys(backend, database)
      return { fields: { test: true } }
    },
    'PATCH /admin/v1/providers/{id}': () => ({
      path: { id: idOf('POST /admin/v1/providers') },
      fields: { business_ids: ['default'] },
    }),
    'POST /console/session': () => ({
      fields: { token: adminToken },
      headers: { 'sec-fetch-site': 'same-origin' },
    }),
    'POST /consent/{link}': async () => {
      const { body } = await asProxy(server, 'POST', `/v1/payments/${await askForConsent()}/consent`)
      return { path: { link: body.url.slice(site.origin.length + 9) } }
    },
    'POST /v1/payments/{id}/consent': async () => ({ path: { id: await askForConsent() } }),
    'POST /passkeys/{link}': async () => {
      const path = await newEnrolment(server, 'ann')
      const { page } = await readPage(server, path)
      const { challenge } = page.options
      return { path: { link: path.slice(10) }, fields: createAuthenticator().create({ ...site, challenge }) }
    },
    'POST /admin/v1/rejected-jobs/{id}/resubmit': async () => {
      await admitJob({ prompt: '', user_id: 'ann' })
      return { path: { id: (await listRejected())[0]?.id ?? '' } }
    },
    'POST /v1/chat/completions': () => ({}),
    'POST /v1/embeddings': () => ({}),
    'POST /v1/images/generations': () => ({}),
    'POST /v1/audio/speech': () => ({}),
    'POST /v1/runs/bulk': () => ({}),
    'POST /v1/runs': () => ({}),
    'POST /v1/runs/wait': () => ({}),
    'POST /v1/runs/{id}/rerun': async () => ({
      path: { id: (await api.wait(idOf('POST /v1/runs'), deadline())).id },
    }),
    'POST /v1/sessions/{id}/fork': async () => {
      const { session_id } = await api.wait(idOf('POST /v1/runs'), deadline())
      return { path: { id: session_id } }
    },
    'POST /admin/v1/effects/{id}/resolve': async () => {
      const effect = unique('effect')
      await elsewhere.asBusiness('default', (sql) =>
        sql.query(
          `INSERT INTO effects (tenant, effect_id, run_id, class, request, request_hash, status)
           VALUES ('default', $1, $2, 'manual', '', '', 'unknown')`,
          [effect, idOf('POST /v1/runs')],
        ),
      )
      return { path: { id: effect } }
    },
    'POST /v1/runs/{id}/cancel': async () => {
      const { run } = await api.submit({ prompt: 'Later', user_id: 'ann', delay_ms: 60_000 })
      return { path: { id: run.id } }
    },
  }

  const { body: document } = await server.call('GET', '/openapi.json')
  const bodies = listBodies(document).filter(({ type }) => type === 'application/json')
  expect(Object.keys(steps).sort()).toEqual(bodies.map(({ operation }) => operation).sort())
  for (const [operation, prepare] of Object.entries(steps)) {
    const { path = {}, fields = {}, headers: more = {} } = await prepare()
    const [method = '', pattern = ''] = operation.split(' ')
    const url = pattern.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ''))
    for (const example of bodies.find((body) => body.operation === operation)?.examples ?? []) {
      const json = { ...example, ...fields }
      const sent = { token: adminToken, json, headers: more }
      const { status, body, text, headers } = await server.call(method, url, sent)
      expect(Math.floor(status / 100), `${operation}: ${text}`).toBe(2)
      const documented = responseSchema(document, operation, status)?.safeParse(body)
      expect(documented?.error?.issues ?? [], `${operation}: ${text}`).toEqual([])
      made.set(operation, body)
      if (!pattern.startsWith('/admin/') || changesNothing.includes(operation)) continue
      const logged = await server.call('GET', `/admin/v1/audit?request_id=${headers.get('x-request-id')}`, {
        token: adminToken,
      })
      expect(logged.body.data, operation).not.toEqual([])
    }
  }
  await Promise.all(carried)
})

/** A program of a user of the generated client. */
const program = `
import { ApiError, OpenAPI, RunsService, StructureEntry, type Delta, type Run, type RunEvent, type RunRequest } from './client'

export const toText = (event: RunEvent): string => (event.event === 'delta' ? (event.data as Delta).text : '')

export const run = async (url: string, token: string, businessId: string): Promise<[string, Run, Run[], number]> => {
  Object.assign(OpenAPI, { BASE: url, TOKEN: token })
  const requestBody: RunRequest = {
    prompt: 'Say hello',
    user_id: 'ann',
    output: { structure: [{ id: 'greeting', expected: 'what you say', type: StructureEntry.type.TEXT }], tool: 'answer' },
    metadata: { order: 'SO-1041' },
  }
  const submitted = await RunsService.submitRun({ requestBody, businessId, idempotencyKey: 'form-1' })
  const { id } = await RunsService.submitRunAndWait({ requestBody, businessId, idempotencyKey: 'form-1' })
  const { data } = await RunsService.listRuns({ businessId, status: 'completed' })
  const error: unknown = await RunsService.getRun({ id: 'none', businessId }).catch((thrown: unknown) => thrown)
  return [submitted.id, await RunsService.getRun({ id, businessId }), data, (error as ApiError).status]
}
`

// the document is the same on servers
const onServers = process.env.MASON_TEST_BACKEND === 'served'

test.skipIf(onServers)(
  'a client that another tool generates from the OpenAPI document compiles, submits and reads',
  async ({ server }) => {
    await using folder = await openFolder()
    const { body: document } = await server.call('GET', '/openapi.json')
    const output = join(folder.path, 'client')
    await generate({ input: document, output, httpClient: HttpClient.FETCH, useOptions: true })
    await writeFile(join(folder.path, 'program.ts'), program)
    const compilerOptions = {
      strict: true,
      module: 'node16',
      target: 'es2022',
      lib: ['es2023', 'dom'],
      types: [],
    }
    await writeFile(
      join(folder.path, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: ['program.ts'] }),
    )
    const tsc = join(import.meta.dirname, '..', '..', 'node_modules', '.bin', 'tsc')
    const { stdout } = await promisify(execFile)(tsc, ['-p', folder.path]).catch(
      (error: { stdout: string }) => error,
    )
    expect(stdout).toBe('')
    const { run } = createRequire(import.meta.url)(join(folder.path, 'program.js'))
    const [id, read, listed, missing] = await run(server.url, adminToken, unique('acme'))
    expect(read).toMatchObject({ id, status: 'completed', metadata: { order: 'SO-1041' } })
    expect([listed, missing]).toEqual([[read], 404])
  },
)
