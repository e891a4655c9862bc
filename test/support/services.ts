import type { ServiceFactories } from '../../src/engine/runs/run-services.ts'
import type { HttpAccess } from '../../src/features/http-request/http.ref.ts'
import type { OpenMandates } from '../../src/features/payments/ports/run-mandates.ref.ts'
import type { Payments } from '../../src/features/payments/ports/run-payments.ref.ts'
import type { GraphParts } from '../../src/graph/graph-parts.ts'
import type { Agents } from '../../src/state/ports/agents.ts'
import type { MediaModels } from '../../src/state/ports/media.ts'
import type { Memories } from '../../src/state/ports/memories.ts'
import type { Models } from '../../src/state/ports/models.ts'
import { commonServices, type Services } from '../../src/state/ports/services.ts'

/** Nothing is remembered of any user. */
const noMemories: Memories = {
  any: async () => false,
  search: async () => [],
  recall: async () => [],
  remember: async () => ({ keep: false, reason: 'empty', id: null }),
}

const noModels: Models = {
  call: async ({ role }) => {
    throw new Error(`the test expected no call of ${role}`)
  },
  hasModel: () => true,
  describe: () => ({ name: 'none', capabilities: ['rules-only'], base_url: null }),
}

/** No model makes or reads media. */
const noMedia: MediaModels = {
  has: () => false,
  make: () => Promise.reject(new Error('the test expected no media')),
  submit: () => Promise.reject(new Error('the test expected no job')),
  poll: () => Promise.reject(new Error('the test expected no job')),
}

/** No host is allowed. */
const noHttp: HttpAccess = {
  hasHosts: async () => false,
  check: async () => ({ ok: false, error: 'no host is allowed' }),
  send: async () => ({ ok: false, error: 'no host is allowed' }),
}

const refuse = () => {
  throw new Error('the test expected no payment')
}
/** No provider is set up. */
const noPayments: Payments = {
  readParts: refuse,
  newId: () => 'pay_1',
  approvalTool: 'create_payment_mandate',
  listProviders: async () => [],
  draft: refuse,
  requestConsent: refuse,
  pay: refuse,
  answer: refuse,
  readResult: refuse,
}

const noMandates: OpenMandates = {
  newId: () => 'mnd_1',
  describe: refuse,
  propose: refuse,
  listUsable: async () => [],
  choose: refuse,
  pay: refuse,
}

const refuseAgent = () => {
  throw new Error('the test expected no call of an agent')
}
/** No agent of others is added. */
const noAgents: Agents = { list: async () => [], send: refuseAgent, wait: refuseAgent, read: refuseAgent }

/** Services in memory, those of the test in place of empty ones. A service that is not here is undefined. */
export const fakeServices = (own: Partial<Services> & Pick<Services, 'clock'>): Services =>
  ({
    agents: noAgents,
    models: noModels,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    files: {
      read: async () => new Uint8Array(),
      readLines: async () => ({ ok: false, reason: 'there are no lines' }),
      prepare: async () => ({ origin_files: [], documents: {}, tables: {}, other_files: {} }),
      descriptions: { find: async () => null, keep: async () => {} },
    },
    blobs: { read: async () => null, store: async () => '' },
    media: noMedia,
    http: noHttp,
    tables: { query: async () => ({ ok: false, reason: 'there are no tables' }) },
    payments: noPayments,
    mandates: noMandates,
    users: { profile: async () => ({}) },
    embeddings: { compare: async () => null },
    memories: noMemories,
    ...own,
  }) satisfies Partial<Services> as Services

/** Factories that give every run the same services. */
export const sharedServices = (services: Services): ServiceFactories =>
  Object.fromEntries(Object.entries(services).map(([name, service]) => [name, () => service])) as never

/** The names of the services that these parts may use: a graph of them can be built. */
export const listNeededServices = ({ nodes, tools }: GraphParts): string[] => [
  ...new Set([...commonServices, ...[...nodes, ...tools].flatMap(({ needs = [] }) => needs)]),
]
