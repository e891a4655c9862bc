import { openMasterKeys } from '../../../infra/secrets/master-key-files.ts'
import { createScrubber } from '../../../infra/secrets/scrubber.ts'
import { minHealthyKeys } from '../../../models/health/model-health.ts'
import { findLimitError } from '../../../models/metering/reservation-size.ts'
import type { KeyEntry, ModelEntry, RegistryView } from '../../../models/ports/model-ports.ts'
import { readRegistryRows } from '../../../models/registry/registry-rows.ts'
import { createRegistryViewBuilder } from '../../../models/registry/registry-view.ts'
import { createCandidateOrders, followsRules } from '../../../models/routing/candidate-order.ts'
import { findInProcessModel } from '../../find-in-process-model.ts'
import { formatPlural, toOneLine } from '../terminal.ts'
import { type DoctorCheck, type DoctorFinding, fail, pass } from './check.ts'
import { hasDatabase, withUnmigratedDatabase } from './database.ts'
import { findRecall } from './recall.ts'

type UnhealthyKey = {
  subject_id: string
  state: 'cooling' | 'probing' | 'disabled'
  until: Date | null
  reason: string | null
}
/** A key whose cooling is over counts as healthy, because the next call uses it. */
const unhealthyKeysQuery = `SELECT subject_id, state, until, last_error->>'message' AS reason FROM mason.model_health
  WHERE subject = 'key' AND state <> 'healthy' AND (state = 'disabled' OR until IS NULL OR until > now())`

/** Reports what in the registry cannot serve. Reads only: it changes nothing and calls no vendor. */
export const checkRegistry: DoctorCheck = async (config) => {
  if (!hasDatabase(config)) return []
  const scrubber = createScrubber()
  const findings = await withUnmigratedDatabase(config, async (database) => {
    const masterKeys = await openMasterKeys(config, (secret) => scrubber.add(secret))
    const builtIn = (await findInProcessModel(config))?.entry
    const parts = { masterKeys, openai: config.openai, builtIn }
    const rows = await readRegistryRows(database)
    const view = createRegistryViewBuilder({ ...parts, onSecret: (secret) => scrubber.add(secret) })(rows)
    const { rows: unhealthy } = await database.query<UnhealthyKey>(unhealthyKeysQuery)
    const findings = listFindings(view, new Map(unhealthy.map((key) => [key.subject_id, key])))
    if (config.database.kind === 'postgres') findings.push(...listOfflineFindings(view))
    if (config.recall) findings.push(await findRecall(database, view))
    return findings.map((finding) => ({ ...finding, text: toOneLine(scrubber.text(finding.text)) }))
  })
  return (
    findings ?? [pass('not checked: another process uses the data folder; run mason models list --url …')]
  )
}

const listFindings = (view: RegistryView, unhealthy: ReadonlyMap<string, UnhealthyKey>): DoctorFinding[] => [
  pass(
    `${formatPlural(view.models.size, 'model')}, ${formatPlural([...view.keysByVendor.values()].flat().length, 'key')}`,
  ),
  ...[...view.keysByVendor].flatMap(([id, keys]) => {
    const vendor = [...view.models.values()].find((model) => model.vendor.id === id)?.vendor
    return vendor?.active ? listKeyFindings(vendor.name, keys, unhealthy, [...view.models.values()]) : []
  }),
  ...listRouteFindings(view),
  ...listScenarioFindings(view),
]

const listKeyFindings = (
  vendor: string,
  keys: readonly KeyEntry[],
  unhealthy: ReadonlyMap<string, UnhealthyKey>,
  models: readonly ModelEntry[],
): DoctorFinding[] => {
  const active = keys.filter((key) => key.active)
  const healthy = active.filter(({ id, secret }) => secret !== null && !unhealthy.has(id)).length
  const path = 'POST /admin/v1/vendors/{id}/keys/{id}'
  const findings = keys.map((key): DoctorFinding | null => {
    const text = `key "${key.label}" of ${vendor}`
    const health = unhealthy.get(key.id)
    if (!key.active) return pass(`${text} is disabled`)
    if (key.error !== null)
      return fail(
        `${text} cannot be opened: ${key.error}`,
        `set the master key that encrypted it, or store a new secret: ${path}/rotate`,
      )
    if (health?.state === 'disabled')
      return fail(
        `${text} was refused: ${health.reason ?? 'the vendor gave no reason'}`,
        `store a new secret: ${path}/rotate; Mason also retries the old one from time to time`,
      )
    const limitError = findLimitError(key.limits, key.vendor_id, models)
    if (limitError !== null)
      return fail(`${text} cannot serve: ${limitError}`, `change its limits: PATCH ${path}`)
    if (health === undefined) return null
    return pass(`${text} is ${health.state} until ${health.until?.toISOString() ?? 'the next call'}`)
  })
  if (active.length > 0 && healthy < minHealthyKeys)
    findings.push(
      fail(
        `${vendor} has ${healthy} of ${formatPlural(active.length, 'key')} that can serve now`,
        'fix or add a key; mason models list shows the health of keys',
      ),
    )
  return findings.filter((finding) => finding !== null)
}

const listRouteFindings = ({ models, routesByRole, routesByCategory }: RegistryView): DoctorFinding[] => {
  const serves = (alias: string): boolean => {
    const model = models.get(alias)
    return model?.active === true && model.vendor.active && model.endpoint.active
  }
  return Object.entries({ role: routesByRole, category: routesByCategory }).flatMap(([kind, routes]) =>
    [...routes]
      .filter(([, route]) => !route.models.some(({ model }) => serves(model)))
      .map(([name]) =>
        fail(
          `the route of ${kind} ${name} has no active model`,
          'enable one of its models, or change the route: PATCH /admin/v1/routes/{id}',
        ),
      ),
  )
}

/** A served Mason is meant for products, where answers by rules would pass unnoticed. */
const listOfflineFindings = (view: RegistryView): DoctorFinding[] => {
  const order = createCandidateOrders(view)({ role: 'planner' })
  if (!order?.members.some(({ entry }) => entry && followsRules(entry))) return []
  return [
    pass(
      'the built-in offline model plans all runs: rules, no AI',
      'set OPENAI_API_KEY or OPENAI_BASE_URL, or add a model: mason models add',
    ),
  ]
}

/** Disabled models are not called, so the runs of a scenario that names one may fail. */
const listScenarioFindings = ({ scenarios, models }: RegistryView): DoctorFinding[] => {
  if (scenarios.size === 0) return []
  const missing = [...scenarios.values()].flatMap(({ name, models: named }) =>
    Object.entries(named)
      .filter(([, alias]) => models.get(alias)?.active !== true)
      .map(([role, alias]) =>
        fail(
          `scenario "${name}" names ${alias} for ${role}, which is missing or disabled`,
          'enable the model, or name another one: PATCH /admin/v1/scenarios/{id}',
        ),
      ),
  )
  return [pass(formatPlural(scenarios.size, 'scenario')), ...missing]
}
