import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { ofBusiness } from '../../../accounts/businesses.ts'
import { httpHeadersSchema } from '../../../accounts/http-hosts.ts'
import type { Database } from '../../../infra/database/database.ts'
import type { Dated } from '../../../infra/database/row-times.ts'
import { checkUrl, isPlainlyPrivate } from '../../../infra/egress/urls.ts'
import { createResourceStore, type ResourceScope } from '../../../infra/resources/resource-store.ts'
import { MasonError } from '../../../state/errors.ts'
import type { RemoteAgent } from '../../../state/ports/agents.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import {
  aliasSchema,
  createFieldsError,
  toChangeSchema,
  toViewSchema,
} from '../../../state/resource-schema.ts'
import { ap2Roles } from './ap2.ts'

const inputSchema = z.strictObject({
  name: aliasSchema.max(64).describe('By which runs call it, unique in the business'),
  card_url: z
    .string()
    .min(1)
    .max(2000)
    .describe(
      'Where its card is: a .json file, or the address below which it is at .well-known/agent-card.json',
    ),
  roles: z
    .array(z.enum(ap2Roles))
    .max(ap2Roles.length)
    .describe('The roles of AP2 that it may play. The card does not add to them')
    .default([]),
  headers: httpHeadersSchema
    .describe('Sent with every request, not seen by the model; `{secrets.NAME}` is a secret of the business')
    .default({}),
  allow_private: z
    .boolean()
    .describe('Whether private addresses are allowed; absent: where `card_url` plainly has one')
    .optional(),
  issuer: z
    .string()
    .min(1)
    .max(500)
    .nullable()
    .describe(
      'Of a merchant: the issuer of the trusted key that signs its carts; it alone is paid by this agent. Null: the origin of `card_url`',
    )
    .default(null),
})

const cardSchema = z.strictObject({
  name: z.string(),
  description: z.string(),
  version: z.string(),
  /** Where it is called, and how. */
  url: z.string(),
  protocol_version: z.string(),
  binding: z.string(),
  skills: z.array(z.strictObject({ id: z.string(), name: z.string(), description: z.string() })),
})
const { name: _, ...changeable } = inputSchema.shape

/** Bodies and views of agents of others. Times are ISO 8601 in UTC. */
export const remoteAgentSchemas = {
  input: inputSchema.meta({
    examples: [{ name: 'shop', card_url: 'https://shop.example/a2a/', roles: ['merchant'] }],
  }),
  change: toChangeSchema(z.strictObject(changeable)).meta({ examples: [{ roles: ['merchant'] }] }),
  view: toViewSchema({
    business_id: z.string(),
    ...inputSchema.shape,
    roles: z.array(z.string()),
    headers: z.record(z.string(), z.string()),
    allow_private: z.boolean(),
    card: cardSchema.describe('What its card said when it was added or last changed'),
  }),
}
type Input = z.output<typeof inputSchema>
type Change = z.output<typeof remoteAgentSchemas.change>
type View = z.output<typeof remoteAgentSchemas.view>

/** A row with its whole card, in the form of A2A 1.0. */
export type RemoteAgentRow = Dated<Omit<View, 'card'>> & {
  /** The headers with their secrets, for the executor of payments alone. */
  sealed_headers: string | null
  card: Record<string, unknown>
}

/** What is written of an agent: `Derived` is not from the body. */
type Derived = Pick<RemoteAgentRow, 'id' | 'allow_private' | 'card' | 'sealed_headers'>
type Stored = Derived & Pick<RemoteAgentRow, 'name' | 'card_url' | 'roles' | 'headers' | 'issuer'>

/** Text of a card, which is not trusted. */
const toText = (value: unknown, max: number): string =>
  typeof value === 'string' ? value.replace(/\p{Cc}+/gu, ' ').slice(0, max) : ''
const toList = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter((one) => one !== null && typeof one === 'object') : []
const maxSkills = 50

const toCardView = (card: Record<string, unknown>): View['card'] => {
  const [first = {}] = toList(card.supportedInterfaces)
  return {
    name: toText(card.name, 200),
    description: toText(card.description, 2000),
    version: toText(card.version, 100),
    url: toText(first.url, 2000),
    protocol_version: toText(first.protocolVersion, 20),
    binding: toText(first.protocolBinding, 50),
    skills: toList(card.skills)
      .slice(0, maxSkills)
      .map(({ id, name, description }) => ({
        id: toText(id, 200),
        name: toText(name, 200),
        description: toText(description, 1000),
      })),
  }
}

/** The agents that a business may call, or the one of a name. */
const readRemoteAgents = async (
  sql: Sql,
  businessId: string,
  name: string | null = null,
): Promise<RemoteAgentRow[]> =>
  (
    await sql.query<RemoteAgentRow>(
      `SELECT agent_id AS id, tenant AS business_id, name, card_url, roles, headers, allow_private, issuer, sealed_headers, card, created_at,
         updated_at FROM remote_agents WHERE tenant = $1 AND ($2::text IS NULL OR name = $2) ORDER BY name LIMIT 100`,
      [businessId, name],
    )
  ).rows

/**
 * Reads the agents of businesses. Who looks an agent up and calls it in the same turn of the event loop does both by one read; a
 * change holds from the next turn on.
 */
export const createAgentRows = (sql: Sql) => {
  const known = new Map<string, RemoteAgentRow>()
  const toKey = (businessId: string, name: string): string => JSON.stringify([businessId, name])
  const read = async (businessId: string, name?: string): Promise<RemoteAgentRow[]> => {
    const rows = await readRemoteAgents(sql, businessId, name)
    setImmediate(() => known.clear())
    for (const row of rows) known.set(toKey(businessId, row.name), row)
    return rows
  }
  return {
    list: (businessId: string): Promise<RemoteAgentRow[]> => read(businessId),
    find: async (businessId: string, name: string): Promise<RemoteAgentRow | undefined> =>
      known.get(toKey(businessId, name)) ?? (await read(businessId, name))[0],
  }
}

/** As runs see an agent. */
export const toRemoteAgent = ({ name, roles, card }: RemoteAgentRow): RemoteAgent => {
  const { description, url, skills } = toCardView(card)
  return { name, roles, description, url, skills }
}

/** Reads a card. Throws `invalid_request` that names `card_url`. */
export type CardReader = (
  businessId: string,
  agent: Pick<RemoteAgentRow, 'card_url' | 'headers' | 'allow_private'>,
) => Promise<Record<string, unknown>>

/** Seals headers with their secrets to the executor of payments; null: there are none, or no executor yet. */
export type HeaderSealer = (
  agent: Pick<RemoteAgentRow, 'id' | 'business_id' | 'card_url' | 'headers'>,
) => Promise<string | null>

/**
 * Agents of others that the runs of a business may call, as admins manage them. Null: there is none of this id. `changed` follows every
 * change.
 */
export const createRemoteAgents = (
  database: Database,
  readCard: CardReader,
  sealHeaders: HeaderSealer,
  changed: () => Promise<void>,
) => {
  const store = createResourceStore<RemoteAgentRow, typeof remoteAgentSchemas, Stored, Stored>(
    { database, changed },
    {
      name: 'agent',
      toId: ({ id }) => id,
      table: 'remote_agents',
      idColumn: 'agent_id',
      fields: ['name', 'card_url', 'allow_private', 'issuer'],
      fixed: ofBusiness.fixed,
      columns: 't.roles, t.headers, t.card',
      toView: ({ roles, headers, card }) => ({ roles, headers, card: toCardView(card) }),
      toValues: ({ roles, headers, card, sealed_headers }) => ({
        roles: JSON.stringify([...new Set(roles)]),
        headers: JSON.stringify(headers),
        card: JSON.stringify(card),
        sealed_headers,
      }),
      toTakenError: ({ name }) =>
        new MasonError('already_exists', `the business has an agent "${name}" already`, {
          remedy: 'choose another name, or PATCH that one',
        }),
    },
  )
  /** Checks an agent, reads its card and seals its headers, before the transaction that writes it. */
  const toStored = async (
    { business_id = '' }: ResourceScope,
    id: string,
    agent: Omit<Stored, keyof Derived> & { allow_private?: boolean | undefined },
  ): Promise<Stored> => {
    const { card_url, headers, allow_private = isPlainlyPrivate(card_url) } = agent
    const error = checkUrl(card_url, { allowPrivate: allow_private })
    if (error) throw createFieldsError({ pointer: '/card_url', ...error })
    const card = await readCard(business_id, { card_url, headers, allow_private })
    const sealed_headers = await sealHeaders({ id, business_id, card_url, headers })
    return { ...agent, id, allow_private, card, sealed_headers }
  }
  return {
    ...store,
    async create(scope: ResourceScope, input: Input): Promise<View> {
      await ofBusiness.prepare(database, scope)
      const id = `agt_${randomBytes(12).toString('hex')}`
      return store.create(scope, await toStored(scope, id, input))
    },
    /** Reads the card again, also where nothing is changed. */
    async change(scope: ResourceScope, id: string, change: Change): Promise<View | null> {
      const before = await store.get(scope, id)
      if (!before) return null
      const { name } = before
      const { card_url = before.card_url, headers = before.headers, roles = before.roles } = change
      const { issuer = before.issuer } = change
      const isMoved = new URL(card_url, 'http://x').origin !== new URL(before.card_url).origin
      if (isMoved && change.headers === undefined && Object.keys(before.headers).length > 0)
        throw createFieldsError({
          pointer: '/headers',
          detail: 'are needed with a card_url at another origin: the stored ones are for the old one',
        })
      const isDerived = isMoved || change.allow_private === null
      const allow_private = change.allow_private ?? (isDerived ? undefined : before.allow_private)
      const agent = { name, card_url, roles, headers, issuer, allow_private }
      return store.change(scope, id, await toStored(scope, id, agent))
    },
    /** Seals the headers of all agents of a business again, after its secrets have changed. */
    async reseal(businessId: string): Promise<void> {
      for (const row of await readRemoteAgents(database, businessId))
        if (Object.keys(row.headers).length > 0)
          await database.query('UPDATE remote_agents SET sealed_headers = $2 WHERE agent_id = $1', [
            row.id,
            await sealHeaders(row),
          ])
    },
  }
}

/** See `createRemoteAgents`. */
export type RemoteAgents = ReturnType<typeof createRemoteAgents>
