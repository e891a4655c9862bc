import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { settingNames } from '../../src/infra/config/settings.ts'
import { createMetrics } from '../../src/infra/telemetry/metrics.ts'

const folder = join(import.meta.dirname, '..', '..', 'deploy')
const read = (path: string): string => readFileSync(join(folder, path), 'utf8')
const list = (path: string): string[] =>
  readdirSync(join(folder, path), { recursive: true, encoding: 'utf8' }).map((name) => join(path, name))

type Labels = Record<string, string>
type Container = {
  image: string
  args: string[]
  envFrom: ({ secretRef: { name: string } } | { configMapRef: { name: string } })[]
  ports?: { name: string; containerPort: number }[]
} & Partial<
  Record<'startupProbe' | 'readinessProbe' | 'livenessProbe', { httpGet: { path: string; port: string } }>
>
type Resource = {
  apiVersion: string
  kind: string
  metadata: { name: string }
  spec: {
    selector?: { matchLabels?: Labels } & Labels
    template?: {
      metadata: { labels: Labels }
      spec: { containers: Container[]; enableServiceLinks: boolean }
    }
    scaleTargetRef?: { name: string }
    ports?: { targetPort: string }[]
    triggers?: { type: string; metadata: Record<string, unknown> }[]
  }
}
type Kustomization = {
  kind: string
  resources: string[]
  configMapGenerator?: { name: string; literals: string[] }[]
}

const kinds: Record<string, string> = {
  Deployment: 'apps/v1',
  Job: 'batch/v1',
  PodDisruptionBudget: 'policy/v1',
  Service: 'v1',
  ScaledObject: 'keda.sh/v1alpha1',
}

const files = list('k8s').filter((path) => path.endsWith('.yaml'))
const resources = files
  .filter((path) => !path.endsWith('kustomization.yaml'))
  .flatMap((path) =>
    parseAllDocuments(read(path)).map((document): Resource => {
      expect([path, document.errors]).toEqual([path, []])
      return document.toJS()
    }),
  )
const kustomizations = files.filter((path) => path.endsWith('kustomization.yaml'))
const pods = resources.flatMap(({ kind, metadata, spec }) =>
  spec.template ? [{ kind, ...metadata, ...spec.template }] : [],
)

describe('deploy/k8s', () => {
  test('has resources of known kinds, each of which a kustomization names', () => {
    for (const { apiVersion, kind } of resources) expect([kind, apiVersion]).toEqual([kind, kinds[kind]])
    const named = kustomizations.flatMap((path) =>
      (parse(read(path)) as Kustomization).resources.map((name) => join(dirname(path), name)),
    )
    expect(named.filter((path) => !existsSync(join(folder, path)))).toEqual([])
    expect(files.filter((path) => !kustomizations.includes(path) && !named.includes(path))).toEqual([])
  })

  test('has selectors, scale targets and ports that lead to a pod', () => {
    for (const { kind, spec } of resources) {
      const selector = spec.selector?.matchLabels ?? spec.selector
      const pod = pods.find(({ metadata }) => metadata.labels.app === selector?.app)
      if (selector) expect([kind, pod?.metadata.labels]).toEqual([kind, selector])
      const ports = pod?.spec.containers[0]?.ports?.map(({ name }) => name)
      for (const { targetPort } of spec.ports ?? []) expect(ports).toContain(targetPort)
      if (spec.scaleTargetRef)
        expect(
          resources.find(
            (one) => one.kind === 'Deployment' && one.metadata.name === spec.scaleTargetRef?.name,
          ),
        ).toBeDefined()
    }
  })

  test('probes the port of the metrics, which the settings open', () => {
    const settings = kustomizations.flatMap(
      (path) => (parse(read(path)) as Kustomization).configMapGenerator ?? [],
    )
    const literals = Object.fromEntries(
      settings.flatMap((one) => one.literals.map((text) => text.split('=', 2))),
    )
    for (const name of Object.keys(literals)) expect(settingNames).toContain(name)
    for (const { kind, spec } of pods) {
      // a service named mason-metrics would set MASON_METRICS_PORT
      expect(spec.enableServiceLinks).toBe(false)
      const [container] = spec.containers
      for (const source of container?.envFrom ?? [])
        if ('configMapRef' in source)
          expect(settings.map(({ name }) => name)).toContain(source.configMapRef.name)
      if (kind === 'Job') continue
      expect(container?.ports).toContainEqual({
        name: 'metrics',
        containerPort: Number(literals.MASON_METRICS_PORT),
      })
      for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'] as const)
        expect(container?.[probe]?.httpGet.port).toBe('metrics')
    }
  })
})

/** The names of all metrics, with those of the parts of histograms. */
const listMetrics = async (): Promise<Set<string>> => {
  const metrics = createMetrics(() => Promise.reject(new Error('no database here')))
  const types = [...(await metrics.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  return new Set(
    types.flatMap(([, name = '', type]) =>
      type === 'histogram' ? ['bucket', 'sum', 'count'].map((part) => `${name}_${part}`) : [name],
    ),
  )
}

test('dashboards, alerts and the scaler name metrics that exist, and the page of metrics has each', async () => {
  const known = await listMetrics()
  const { panels } = JSON.parse(read('grafana/mason.json')) as { panels: { targets: { expr: string }[] }[] }
  const { groups } = parse(read('grafana/alerts.yaml')) as {
    groups: { rules: { alert: string; expr: string }[] }[]
  }
  const expressions = [
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ...groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
    ...resources.flatMap(({ spec }) => (spec.triggers ?? []).map(({ metadata }) => String(metadata.query))),
  ]
  expect(expressions.length).toBeGreaterThan(25)
  const named = expressions.flatMap((text) => text.match(/\bmason_\w+/g) ?? [])
  expect(named.filter((name) => !known.has(name))).toEqual([])
  const page = readFileSync(join(folder, '..', 'docs', 'metrics.md'), 'utf8')
  const own = [...known].filter((name) => !/^mason_(process|nodejs)_|_(bucket|sum)$/.test(name))
  expect(own.filter((name) => !page.includes(name.replace(/_seconds_count$/, '_seconds')))).toEqual([])
})
