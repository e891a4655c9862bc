import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { featureSources } from '../../src/app/features.generated.ts'
import { executorSettings } from '../../src/app/read-config.ts'
import { metricsRef } from '../../src/features/core.ref.ts'
import { loadKind } from '../../src/features/definition-files.ts'
import { openFeatures } from '../../src/features/load-features.ts'
import { settingNames as coreNames } from '../../src/infra/config/settings.ts'
import type { Check } from '../check-repository.ts'
import { root } from '../source-tree.ts'

const read = (path: string): string => readFileSync(join(root, path), 'utf8')

type Compose = { services: Record<string, { environment?: Record<string, string | null> }> }
const { services } = parse(read('compose.yaml'), { merge: true }) as Compose
/** What a container of this file does not need: one login would do for all, embedded mode, a fixed port, and clients. */
const absent = ['DATABASE_URL', 'DATA_DIR', 'PORT', 'MASON_AUTH', 'MASON_URL', 'MASON_TOKEN']
/** The settings that only some of the processes get. */
const logins = ['MASON_API_DATABASE_URL', 'MASON_WORKER_DATABASE_URL', 'MASON_MIGRATE_URL']
/** What the executor of payments has alone. */
const executors = Object.keys(executorSettings?.schema.shape ?? {})
const settingNames: readonly string[] = [...coreNames, ...executors]
const wanted = settingNames.filter((name) => !absent.includes(name))
/** Those that Compose passes to a service; the option of Node stands in docs/scale.md. */
const passedTo = (service: string): string[] =>
  Object.keys(services[service]?.environment ?? {}).filter((name) => name !== 'NODE_OPTIONS')
const containers = ['api', 'worker', 'payments', 'migrate']
const mustHave = (service: string): readonly string[] =>
  service === 'payments'
    ? executors
    : wanted.filter((name) => !logins.includes(name) && !executors.includes(name))

type Labels = Record<string, string>
type Container = {
  envFrom: ({ secretRef: { name: string } } | { configMapRef: { name: string } })[]
  ports?: { name: string; containerPort: number }[]
} & Partial<Record<'startupProbe' | 'readinessProbe' | 'livenessProbe', { httpGet: { port: string } }>>
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
    triggers?: { metadata: Record<string, unknown> }[]
  }
}
type Kustomization = { resources: string[]; configMapGenerator?: { name: string; literals: string[] }[] }

const kinds: Record<string, string> = {
  Deployment: 'apps/v1',
  Job: 'batch/v1',
  PodDisruptionBudget: 'policy/v1',
  Service: 'v1',
  ScaledObject: 'keda.sh/v1alpha1',
}
const files = readdirSync(join(root, 'deploy/k8s'), { recursive: true, encoding: 'utf8' })
  .map((name) => join('deploy/k8s', name))
  .filter((path) => path.endsWith('.yaml'))
const indexes = files.filter((path) => path.endsWith('kustomization.yaml'))
const documents = files
  .filter((path) => !indexes.includes(path))
  .flatMap((path) => parseAllDocuments(read(path)).map((document) => ({ path, document })))
const resources = documents.map(({ document }) => document.toJS() as Resource)
const kustomizations = indexes.map((path) => [path, parse(read(path)) as Kustomization] as const)
const named = kustomizations.flatMap(([path, one]) => one.resources.map((name) => join(dirname(path), name)))
const pods = resources.flatMap(({ kind, metadata, spec }) =>
  spec.template ? [{ kind, ...metadata, ...spec.template }] : [],
)
const generated = kustomizations.flatMap(([, one]) => one.configMapGenerator ?? [])
const literals = Object.fromEntries(
  generated.flatMap((one) => one.literals.map((text) => text.split('=', 2) as [string, string])),
)

/** What a resource names and no pod has. */
const findLoose = ({ kind, metadata, spec }: Resource): string[] => {
  const selector: Labels | undefined = spec.selector?.matchLabels ?? spec.selector
  const pod = pods.find((one) => one.metadata.labels.app === selector?.app)
  const labels = pod?.metadata.labels ?? {}
  const ports = pod?.spec.containers[0]?.ports?.map(({ name }) => name) ?? []
  const target = spec.scaleTargetRef?.name
  const isThere = resources.some((one) => one.kind === 'Deployment' && one.metadata.name === target)
  return [
    ...Object.entries(selector ?? {}).flatMap(([name, value]) =>
      labels[name] === value ? [] : [`the label ${name}=${value}`],
    ),
    ...(spec.ports ?? []).flatMap(({ targetPort }) =>
      ports.includes(targetPort) ? [] : [`the port ${targetPort}`],
    ),
    ...(target === undefined || isThere ? [] : [`the deployment ${target}`]),
  ].map((what) => `${kind} ${metadata.name}: ${what}`)
}

const findPodProblems = ({ kind, name, spec }: (typeof pods)[number]): string[] => {
  const [container] = spec.containers
  const port = container?.ports?.find((one) => one.name === 'metrics')?.containerPort
  const probes = ['startupProbe', 'readinessProbe', 'livenessProbe'] as const
  return [
    // a service named mason-metrics would set MASON_METRICS_PORT
    ...(spec.enableServiceLinks === false ? [] : ['enableServiceLinks is not false']),
    ...(container?.envFrom ?? []).flatMap((source) =>
      'configMapRef' in source && !generated.some((one) => one.name === source.configMapRef.name)
        ? [`no kustomization makes ${source.configMapRef.name}`]
        : [],
    ),
    ...(kind === 'Job' || port === Number(literals.MASON_METRICS_PORT)
      ? []
      : [`the port of the metrics is not ${literals.MASON_METRICS_PORT}`]),
    ...(kind === 'Job' ? [] : probes).flatMap((probe) =>
      container?.[probe]?.httpGet.port === 'metrics' ? [] : [`${probe} does not ask the port of the metrics`],
    ),
  ].map((what) => `${kind} ${name}: ${what}`)
}

/** The names of all metrics, with those of the parts of histograms. */
const listMetrics = async (): Promise<string[]> => {
  const createMetrics = (await openFeatures(featureSources, [], [metricsRef])).get(metricsRef)
  const metrics = createMetrics(() => Promise.reject(new Error('no database here')))
  for (const { definition } of await loadKind(featureSources, 'metrics'))
    metrics.addCounter({ ...definition, read: () => null })
  const types = [...(await metrics.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  return types.flatMap(([, name = '', type]) =>
    type === 'histogram' ? ['bucket', 'sum', 'count'].map((part) => `${name}_${part}`) : [name],
  )
}
/** The metrics that dashboards, alerts and the scaler name. */
const listNamedMetrics = (): string[] => {
  const { panels } = JSON.parse(read('deploy/grafana/mason.json')) as {
    panels: { targets: { expr: string }[] }[]
  }
  const { groups } = parse(read('deploy/grafana/alerts.yaml')) as { groups: { rules: { expr: string }[] }[] }
  const expressions = [
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ...groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
    ...resources.flatMap(({ spec }) => (spec.triggers ?? []).map(({ metadata }) => String(metadata.query))),
  ]
  return expressions.flatMap((text) => text.match(/\bmason_\w+/g) ?? [])
}

/** What compose.yaml and deploy/ keep to. */
export const deployment: readonly Check[] = [
  [
    'compose.yaml passes what is no setting of its containers',
    () =>
      containers.flatMap((name) =>
        passedTo(name)
          .filter(
            (one) =>
              !wanted.includes(one as never) || (['api', 'worker'].includes(name) && executors.includes(one)),
          )
          .map((one) => `${name}: ${one}`),
      ),
  ],
  [
    'compose.yaml does not pass a setting',
    () => [
      ...wanted.filter((one) => !containers.some((name) => passedTo(name).includes(one))),
      ...['api', 'worker', 'payments'].flatMap((name) =>
        mustHave(name)
          .filter((one) => !passedTo(name).includes(one))
          .map((one) => `${name}: ${one}`),
      ),
    ],
  ],
  [
    'a resource is no YAML',
    () =>
      documents.flatMap(({ path, document }) => document.errors.map(({ message }) => `${path}: ${message}`)),
  ],
  [
    'a resource is of an unknown kind',
    () =>
      resources
        .filter(({ kind, apiVersion }) => kinds[kind] !== apiVersion)
        .map(({ kind, apiVersion }) => `${apiVersion} ${kind}`),
  ],
  [
    'a kustomization names a file that is not there',
    () => named.filter((path) => !existsSync(join(root, path))),
  ],
  [
    'no kustomization names a file',
    () => files.filter((path) => !indexes.includes(path) && !named.includes(path)),
  ],
  ['a resource names what no pod has', () => resources.flatMap(findLoose)],
  [
    'a kustomization has what is no setting',
    () => Object.keys(literals).filter((name) => !settingNames.includes(name)),
  ],
  ['a pod is not watched', () => pods.flatMap(findPodProblems)],
  [
    'a dashboard, an alert or the scaler names a metric that is not there',
    async () => {
      const known = await listMetrics()
      return listNamedMetrics().filter((name) => !known.includes(name))
    },
  ],
  [
    'docs/metrics.md does not name a metric',
    async () => {
      const page = read('docs/metrics.md')
      return (await listMetrics())
        .filter((name) => !/^mason_(process|nodejs)_|_(bucket|sum)$/.test(name))
        .filter((name) => !page.includes(name.replace(/_seconds_count$/, '_seconds')))
    },
  ],
]
