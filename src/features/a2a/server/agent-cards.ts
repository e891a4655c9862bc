import { z } from 'zod'
import { ensureBusiness } from '../../../accounts/businesses.ts'
import { type Database, hasRow, queryOne } from '../../../infra/database/database.ts'
import { type Dated, toIsoTimes } from '../../../infra/database/row-times.ts'
import { createPlainTextSchema, labelSchema } from '../../../state/resource-schema.ts'
import { ap2Roles } from '../client/ap2.ts'

const textSchema = createPlainTextSchema(2000).min(1)
const addressSchema = z.url({ protocol: /^https?$/, error: 'must be an http or https address' }).max(2000)
const modesSchema = z.array(z.string().min(1).max(200)).max(20)

const skillSchema = z.strictObject({
  id: labelSchema.describe('Its name for programs'),
  name: labelSchema.describe('Its name for people'),
  description: textSchema.describe('What it does'),
  tags: z.array(labelSchema).max(50).describe('Words to find it by').default([]),
  examples: z.array(textSchema).max(20).describe('Messages that it fits').optional(),
  input_modes: modesSchema.describe('Media types that it takes, where they differ').optional(),
  output_modes: modesSchema.describe('Media types that it returns, where they differ').optional(),
})

/** What a business says of itself to other agents: the body that an admin sends. */
export const agentCardSchema = z
  .strictObject({
    name: labelSchema.describe('The name of the agent'),
    description: textSchema.describe('What the agent is for'),
    version: labelSchema.describe('Of the agent').default('1.0.0'),
    skills: z
      .array(skillSchema)
      .min(1)
      .max(50)
      .refine((skills) => new Set(skills.map(({ id }) => id)).size === skills.length, 'ids must differ')
      .describe('What it can do'),
    roles: z
      .array(z.enum(ap2Roles))
      .max(ap2Roles.length)
      .describe('Its roles in AP2. With any, the card names the AP2 extension; a merchant requires it')
      .default([]),
    scenario: z.string().min(1).max(200).describe('The scenario of runs that other agents start').optional(),
    provider: z
      .strictObject({
        organization: labelSchema.describe('Who offers the agent'),
        url: addressSchema.describe('Their website'),
      })
      .describe('Who offers the agent')
      .optional(),
    documentation_url: addressSchema.describe('A page about the agent').optional(),
  })
  .meta({
    examples: [
      {
        name: 'Coffee finder',
        description: 'Finds and buys coffee makers',
        skills: [{ id: 'search_catalog', name: 'Search the catalog', description: 'Finds products' }],
        roles: ['shopper'],
      },
    ],
  })

/** A card as an admin wrote it. */
export type AgentCardInput = z.infer<typeof agentCardSchema>

/** A card as the admin API returns it. */
export const agentCardViewSchema = z.strictObject({
  business_id: z.string(),
  /** As PUT takes it. */
  card: z.looseObject({}),
  created_at: z.string(),
  updated_at: z.string(),
})
type AgentCardView = Omit<z.infer<typeof agentCardViewSchema>, 'card'> & { card: AgentCardInput }

type Row = Dated<AgentCardView>
const columns = 'tenant AS business_id, card, created_at, updated_at'

type ServedCard = {
  card: AgentCardInput
  payload: Record<string, string> | null
  signatures: Record<string, { protected: string; signature: string }>
  updated_at: Date
}

/** The cards of businesses. A business without one serves no A2A. */
export const createAgentCards = (database: Database) => ({
  /** Null: the business has no card. */
  async get(businessId: string): Promise<AgentCardView | null> {
    const row = await queryOne<Row>(database, `SELECT ${columns} FROM agent_cards WHERE tenant = $1`, [
      businessId,
    ])
    return row && toIsoTimes(row)
  },
  /** What is served of a card: null: the business has none. `signatures` by version, empty until the executor has signed. */
  read: (businessId: string): Promise<ServedCard | null> =>
    queryOne(
      database,
      `SELECT card, payload, COALESCE(signatures, '{}') AS signatures, updated_at FROM agent_cards WHERE tenant = $1`,
      [businessId],
    ),
  /** Stores what is to be signed, by version; the executor signs it anew. */
  async sign(businessId: string, payload: Record<string, string>): Promise<void> {
    await database.query(
      `UPDATE agent_cards SET payload = $2, signatures = NULL, updated_at = clock_timestamp() WHERE tenant = $1`,
      [businessId, JSON.stringify(payload)],
    )
  },
  /** Replaces the card of a business as a whole. */
  async put(businessId: string, card: AgentCardInput): Promise<AgentCardView> {
    await ensureBusiness(database, businessId)
    const row = await queryOne<Row>(
      database,
      `INSERT INTO agent_cards (tenant, card) VALUES ($1, $2)
       ON CONFLICT (tenant) DO UPDATE SET card = EXCLUDED.card, updated_at = clock_timestamp() RETURNING ${columns}`,
      [businessId, JSON.stringify(card)],
    )
    return toIsoTimes(row as Row)
  },
  /** False: there was none. */
  remove: (businessId: string): Promise<boolean> =>
    hasRow(database, 'DELETE FROM agent_cards WHERE tenant = $1 RETURNING tenant', [businessId]),
})

/** See `createAgentCards`. */
export type AgentCards = ReturnType<typeof createAgentCards>
