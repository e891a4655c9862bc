import { poolFloor } from '../../infra/models/health/floor.ts'
import type { KeyEntry, RegistryView } from '../../infra/models/ports.ts'
import { readRows } from '../../infra/registry/rows.ts'
import { createViewMaker } from '../../infra/registry/view.ts'
import { openMasterKeys } from '../../infra/secrets/master-key-files.ts'
import { createScrubber } from '../../infra/secrets/scrubber.ts'
import type { Check, Finding } from '../doctor.ts'
import { oneLine, plural } from '../terminal.ts'
import { hasDatabase } from './database.ts'
import { readDatabase } from './read-database.ts'

type Sick = {
  subject_id: string
  state: 'cooling' | 'probing' | 'disabled'
  until: Date | null
  reason: string | null
}
/** A cooling that is over counts as healthy: the next call tries it. */
const sickQuery = `SELECT subject_id, state, until, last_error->>'message' AS reason FROM mason.model_health
  WHERE subject = 'key' AND state <> 'healthy' AND (state = 'disabled' OR until IS NULL OR until > now())`

/** What the registry holds that cannot serve. Looks only; nothing is changed and no vendor is asked. */
export const checkRegistry: Check = async (config) => {
  if (!hasDatabase(config)) return []
  const scrubber = createScrubber()
  const findings = await readDatabase(config, async (database) => {
    const masterKeys = await openMasterKeys(config, (secret) => scrubber.add(secret))
    const { openai } = config
    const rows = await readRows(database)
    const view = createViewMaker({ masterKeys, openai, onSecret: (secret) => scrubber.add(secret) })(rows)
    const { rows: sick } = await database.query<Sick>(sickQuery)
    return findingsOf(view, new Map(sick.map((one) => [one.subject_id, one]))).map((finding) => ({
      ...finding,
      text: oneLine(scrubber.text(finding.text)),
    }))
  })
  return (
    findings ?? [
      { ok: true, text: 'in use by the process that has the folder; ask it: mason models list --url …' },
    ]
  )
}

const findingsOf = (view: RegistryView, sick: ReadonlyMap<string, Sick>): Finding[] => [
  {
    ok: true,
    text: `${plural(view.models.size, 'model')}, ${plural([...view.keysByVendor.values()].flat().length, 'key')}`,
  },
  ...[...vendorsOf(view)].flatMap(([id, name]) => keyFindings(name, view.keysByVendor.get(id) ?? [], sick)),
  ...formatFindings(view),
  ...routeFindings(view),
  ...scenarioFindings(view),
]

const vendorsOf = ({ models }: RegistryView): Map<string, string> =>
  new Map(
    [...models.values()].filter(({ vendor }) => vendor.active).map(({ vendor }) => [vendor.id, vendor.name]),
  )

const keyFindings = (
  vendor: string,
  keys: readonly KeyEntry[],
  sick: ReadonlyMap<string, Sick>,
): Finding[] => {
  const active = keys.filter((key) => key.active)
  const healthy = active.filter(({ id, secret }) => secret !== null && !sick.has(id)).length
  const path = 'POST /admin/v1/vendors/{id}/keys/{id}'
  const findings = keys.map((key): Finding | null => {
    const text = `key "${key.label}" of ${vendor}`
    const health = sick.get(key.id)
    if (!key.active) return { ok: true, text: `${text} is switched off` }
    if (key.fault !== null)
      return {
        ok: false,
        text: `${text} cannot be opened: ${key.fault}`,
        remedy: `set the master key it was stored under, or give it a new secret: ${path}/rotate`,
      }
    if (health?.state === 'disabled')
      return {
        ok: false,
        text: `${text} was refused: ${health.reason ?? 'the vendor did not say why'}`,
        remedy: `give it a new secret: ${path}/rotate; it is tried again now and then by itself`,
      }
    if (health === undefined) return null
    return {
      ok: true,
      text: `${text} is ${health.state} until ${health.until?.toISOString() ?? 'it is tried'}`,
    }
  })
  if (active.length > 0 && healthy < poolFloor)
    findings.push({
      ok: false,
      text: `${vendor} has ${healthy} of ${plural(active.length, 'key')} that can serve now`,
      remedy: 'mend or add a key; mason models list shows how they are',
    })
  return findings.filter((finding) => finding !== null)
}

const formatFindings = ({ models }: RegistryView): Finding[] =>
  [...models.values()]
    .filter(({ active, format }) => active && format?.status === 'inactive')
    .map(({ name, format }) => ({
      ok: false,
      text: `model ${name} is passed over: its response format "${format?.name}" is inactive (${format?.faults[0]?.detail ?? 'a sample fails'})`,
      remedy: `correct it: PATCH /admin/v1/response-formats/${format?.id}`,
    }))

const routeFindings = ({ models, routesByRole, routesByCategory }: RegistryView): Finding[] => {
  const serves = (alias: string): boolean => {
    const model = models.get(alias)
    return model?.active === true && model.vendor.active && model.endpoint.active
  }
  const named = [
    ...[...routesByRole].map(([role, route]) => [`role ${role}`, route] as const),
    ...[...routesByCategory].map(([category, route]) => [`category ${category}`, route] as const),
  ]
  return named
    .filter(([, route]) => !route.models.some(({ model }) => serves(model)))
    .map(([name]) => ({
      ok: false,
      text: `the route of ${name} leads to nothing: none of its models is there and active`,
      remedy: 'enable one of its models, or PATCH /admin/v1/routes/{id} to others',
    }))
}

/** A model that is switched off is not called: the run of its scenario fails where nobody stands in. */
const scenarioFindings = ({ scenarios, models }: RegistryView): Finding[] => {
  if (scenarios.size === 0) return []
  const away = [...scenarios.values()].flatMap(({ name, models: named }) =>
    Object.entries(named)
      .filter(([, alias]) => models.get(alias)?.active !== true)
      .map(([role, alias]) => ({
        ok: false,
        text: `scenario "${name}" names ${alias} for ${role}, which is not there or switched off`,
        remedy: 'enable the model, or PATCH /admin/v1/scenarios/{id} to another',
      })),
  )
  return [{ ok: true, text: plural(scenarios.size, 'scenario') }, ...away]
}
