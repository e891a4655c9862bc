import { access } from 'node:fs/promises'
import { basename } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { loadAllParts } from '../../src/app/load-all-parts.ts'
import { readConfig } from '../../src/app/read-config.ts'
import { defineCommand } from '../../src/features/command-definition.ts'
import { configRef, databaseRef } from '../../src/features/core.ref.ts'
import { defineResource } from '../../src/features/define-resource.ts'
import {
  type FeatureSource,
  listFilesOfKinds,
  loadKind,
  readFileKind,
} from '../../src/features/definition-files.ts'
import {
  type Definition,
  defineFeature,
  defineLoop,
  defineRef,
  defineRetention,
  defineRoutes,
  defineRunService,
  defineService,
  optional,
} from '../../src/features/definitions.ts'
import { openFeatures, provide } from '../../src/features/load-features.ts'
import { buildGraph } from '../../src/graph/build.ts'
import { type LoadedParts, loadInTime, loadParts } from '../../src/graph/load.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import { MasonError } from '../../src/state/errors.ts'
import { callTool } from '../support/parts.ts'
import { listNeededServices } from '../support/services.ts'

/** A folder with these files beside its feature.ts. */
const folder = (
  id: string,
  files: Record<string, unknown>,
  feature: Definition | null = defineFeature({ id, tables: [] }),
): FeatureSource => ({
  folder: `features/${id}`,
  files: Object.fromEntries(
    Object.entries({ ...(feature && { 'feature.ts': feature }), ...files }).map(([file, definition]) => [
      file,
      async () => ({ default: definition }),
    ]),
  ),
})
const open = (...sources: FeatureSource[]) => openFeatures(sources, [provide(greetingRef, 'hello')])
const refuses = (message: string, remedy: string) => expect.objectContaining({ message, remedy })

const greetingRef = defineRef<string>('core.greeting')
const aRef = defineRef<string>('a.text')
const bRef = defineRef<string>('b.text')
const needing = (provides: typeof aRef, needed: typeof aRef) =>
  defineService({ provides, needs: { needed }, start: ({ needed }) => `${needed}!` })

describe('the features of a process', () => {
  test('have their services started after what they need, whatever their names', async () => {
    const features = await open(
      folder('a', { 'a.service.ts': needing(aRef, bRef) }),
      folder('b', { 'b.service.ts': needing(bRef, greetingRef) }),
    )
    expect(features.get(aRef)).toBe('hello!!')
  })

  test('get null for what they need only where it is there', async () => {
    const asking = defineService({
      provides: aRef,
      needs: { there: optional(greetingRef), absent: optional(bRef) },
      start: ({ there, absent }) => `${there} ${absent}`,
    })
    expect((await open(folder('a', { 'a.service.ts': asking }))).get(aRef)).toBe('hello null')
    const both = await open(
      folder('a', { 'a.service.ts': asking }),
      folder('b', { 'b.service.ts': needing(bRef, greetingRef) }),
    )
    expect(both.get(aRef)).toBe('hello hello!')
  })

  test('start only the services that a process names, and what these need', async () => {
    const started: string[] = []
    const noting = (provides: typeof aRef, needs: Record<string, typeof aRef>) =>
      defineService({
        provides,
        needs,
        start() {
          started.push(provides.id)
          return ''
        },
      })
    const [cRef, dRef] = [defineRef<string>('c.text'), defineRef<string>('d.text')]
    const sources = [
      folder('a', { 'text.service.ts': noting(aRef, { bRef }) }),
      folder('b', { 'text.service.ts': noting(bRef, {}) }),
      folder('c', { 'text.service.ts': noting(cRef, { dRef }) }),
    ]
    const features = await openFeatures(sources, [], [aRef])
    expect(started).toEqual(['b.text', 'a.text'])
    expect(features.find(cRef)).toBeNull()
  })

  test('load no file but those that are asked for', async () => {
    const loaded: string[] = []
    const source: FeatureSource = {
      folder: 'features/a',
      files: {
        'feature.ts': async () => ({ default: defineFeature({ id: 'a', tables: [] }) }),
        'a.routes.ts': async () => {
          loaded.push('routes')
          return { default: defineRoutes({ needs: {}, add: () => {} }) }
        },
      },
    }
    const features = await openFeatures([source], [])
    expect(loaded).toEqual([])
    await features.addRoutes({} as never, {} as never)
    expect(loaded).toEqual(['routes'])
  })

  test('give a process without a runtime one service, of which no other file is loaded', async () => {
    const service = defineService({
      provides: defineRef<string>('core.echo'),
      needs: {},
      start: () => 'echo',
    })
    const { files, ...source } = folder('a', { 'parts/echo.service.ts': service })
    const others = ['feature.ts', 'other.service.ts', 'a.routes.ts'].map(
      (file) => [file, () => Promise.reject(new Error(`${file} was loaded`))] as const,
    )
    const sources = [{ ...source, files: { ...files, ...Object.fromEntries(others) } }]
    const features = await openFeatures(sources, [], [service.provides, aRef])
    expect(features.get(service.provides)).toBe('echo')
    expect(features.find(aRef)).toBeNull()
  })

  test('delete what each of them has of a user, and say whether there was any', async () => {
    const deleted: string[] = []
    const having = (name: string, hasSome: boolean) =>
      defineRetention({
        async deleteOfUser(_, business, user) {
          deleted.push(`${name} ${business} ${user}`)
          return hasSome
        },
      })
    const sweep = async () => {}
    const features = await open(
      folder('a', { 'a.retention.ts': having('a', true), 'old.retention.ts': defineRetention({ sweep }) }),
      folder('b', { 'b.retention.ts': having('b', false) }),
    )
    const { deleteOfUser, sweeps } = await features.loadRetention()
    expect(await deleteOfUser(null as never, 'shop', 'ann')).toBe(true)
    expect(deleted).toEqual(['a shop ann', 'b shop ann'])
    expect(sweeps).toEqual([sweep])
    const { deleteOfUser: deleteOfB } = await (
      await open(folder('b', { 'b.retention.ts': having('b', false) }))
    ).loadRetention()
    expect(await deleteOfB(null as never, 'shop', 'ann')).toBe(false)
  })

  test('stop their loops in reverse, each with what it has in flight', async () => {
    const events: string[] = []
    const loop = (name: string) =>
      defineLoop({
        name,
        everyMs: 60_000,
        needs: {},
        run: async () => void events.push(`${name} runs`),
        async drain(_, lastRun) {
          events.push(`${name} drains`)
          await lastRun
        },
      })
    const features = await open(
      folder('a', { 'a.loop.ts': loop('a') }),
      folder('b', { 'b.loop.ts': loop('b') }),
    )
    const loops = (await features.loadLoops())(systemClock, silentLog)
    await loops.stop()
    expect(events).toEqual(['a runs', 'b runs', 'b drains', 'a drains'])
  })

  test('stop whatever one of their loops throws, also in its drain', async () => {
    const warned: string[] = []
    const log = { ...silentLog, warn: (_: object, message: string) => void warned.push(message) }
    const throwing = defineLoop({
      name: 'working',
      everyMs: 60_000,
      needs: {},
      run() {
        throw new Error('at once')
      },
      drain: () => Promise.reject(new Error('in flight')),
    })
    const features = await open(folder('a', { 'a.loop.ts': throwing }))
    const loops = (await features.loadLoops())(systemClock, log)
    await loops.stop()
    expect(warned).toEqual(['working failed and will be retried', 'working: stopping failed'])
  })
})

describe('the tools of features', () => {
  const versionOf = (parts: LoadedParts): string => buildGraph(parts, listNeededServices(parts)).version
  const named = ({ tools }: LoadedParts): string[] => tools.map(({ name }) => name)
  const greet = callTool('greet', () => 'hello')

  test('stand among those of src/tools by their names, so that a move leaves the version of the graph', async () => {
    const before = await loadParts()
    const { files, ...parts } = await loadParts(
      [],
      listFilesOfKinds([folder('a', { 'greet.tool.ts': greet })], 'node', 'tool'),
    )
    const at = named(before).findIndex((name) => name.replaceAll('_', '-') > 'greet')
    expect(at).toBeGreaterThan(0)
    expect(named({ files, ...parts })).toEqual(named(before).toSpliced(at, 0, 'greet'))
    const inTools = { nodes: before.nodes, tools: before.tools.toSpliced(at, 0, greet), files }
    expect(versionOf({ files, ...parts })).toBe(versionOf(inTools))
    expect(versionOf({ files, ...parts })).not.toBe(versionOf(before))
  })

  test('are sorted by their files, which are there', async () => {
    const { nodes, tools, files } = await loadAllParts()
    const names = tools.map((tool) => basename(files.get(tool) ?? ''))
    expect(names).toEqual([...names].sort())
    await Promise.all([...nodes, ...tools].map((part) => access(files.get(part) ?? '')))
  })

  test('have the services of runs that features open', async () => {
    const service = defineRunService({
      name: 'greeter' as never,
      needs: { greeting: greetingRef },
      open: ({ greeting }, run) => `${greeting} ${run.user_id}` as never,
    })
    const source = folder('a', { 'greeter.run-service.ts': service })
    const features = await open(source)
    const services: Record<string, unknown> = await features.loadRunServices(['http'])
    expect(Object.keys(services)).toEqual(['greeter'])
    const openGreeter = services.greeter as (run: object, sql: null) => unknown
    expect(openGreeter({ user_id: 'ann' }, null)).toBe('hello ann')
    await expect(features.loadRunServices(['greeter'])).rejects.toEqual(
      refuses(
        'features/a/greeter.run-service.ts and the core both define the service of runs "greeter"',
        'give one of them another name, or remove it',
      ),
    )
    const other = folder('b', { 'greeter.run-service.ts': service })
    await expect((await open(source, other)).loadRunServices([])).rejects.toThrow(
      'features/b/greeter.run-service.ts and features/a/greeter.run-service.ts both define',
    )
    await expect((await open(folder('c', { 'c.run-service.ts': null }))).loadRunServices([])).rejects.toEqual(
      refuses(
        'features/c/c.run-service.ts has no run-service as its default export',
        'write: export default defineRunService({ … })',
      ),
    )
  })
})

describe('an error of features names both sides and the remedy', () => {
  test('where services need each other in a circle', async () => {
    await expect(
      open(
        folder('a', { 'a.service.ts': needing(aRef, bRef) }),
        folder('b', { 'b.service.ts': needing(bRef, aRef) }),
      ),
    ).rejects.toEqual(
      refuses(
        'services need each other in a circle: features/a/a.service.ts -> features/b/b.service.ts -> features/a/a.service.ts',
        'move what both need to a service of its own',
      ),
    )
  })

  test('where a feature is missing', async () => {
    await expect(open(folder('a', { 'a.service.ts': needing(aRef, bRef) }))).rejects.toEqual(
      refuses(
        'features/a/a.service.ts needs "b.text", which no feature provides',
        'write a *.service.ts that provides it, add the feature "b", or remove features/a/a.service.ts',
      ),
    )
    const features = await open(
      folder('a', { 'a.routes.ts': defineRoutes({ needs: { b: bRef }, add: () => {} }) }),
    )
    await expect(features.addRoutes({} as never, {} as never)).rejects.toThrow(
      'features/a/a.routes.ts needs "b.text"',
    )
    expect(() => features.get(bRef)).toThrow('"b.text"')
    expect(features.find(bRef)).toBeNull()
  })

  test('where two have one id', async () => {
    await expect(
      open(folder('a', {}), folder('b', {}, defineFeature({ id: 'a', tables: [] }))),
    ).rejects.toEqual(
      refuses(
        'features/b/feature.ts and features/a/feature.ts both define the feature "a"',
        'give one of them another id, or remove it',
      ),
    )
  })

  test('where a setting of the environment is missing or wrong, all of them, and where its name is not of the feature', async () => {
    const settings = z.object({
      MASON_A_B_KEY: z.string(),
      MASON_A_B_LIMIT: z.coerce.number().max(9).default(3),
    })
    const openWith = async (env: Record<string, string>, definition = { settings }) => {
      const feature = defineFeature({ id: 'a-b', tables: [], ...definition })
      const config = readConfig({ MASON_AUTH: 'off', ...env }, { role: 'tools' })
      return openFeatures([folder('a-b', {}, feature)], [provide(configRef, config)])
    }
    const settingsRef = defineRef<z.infer<typeof settings>>('a-b.settings')
    const opened = await openWith({ MASON_A_B_KEY: ' k ', MASON_A_B_LIMIT: '', MASON_OTHER: 'x' })
    expect(opened.get(settingsRef)).toEqual({ MASON_A_B_KEY: 'k', MASON_A_B_LIMIT: 3 })
    await expect(openWith({ MASON_A_B_LIMIT: '12' })).rejects.toEqual(
      refuses(
        'MASON_A_B_KEY is missing; MASON_A_B_LIMIT: Too big: expected number to be <=9',
        'set it in the environment or in .env; features/a-b/feature.ts has its values',
      ),
    )
    const foreign = { settings: z.object({ LIMIT: z.string() }) as never }
    await expect(openWith({}, foreign)).rejects.toEqual(
      refuses('features/a-b/feature.ts has the setting "LIMIT"', 'begin its name with MASON_A_B_'),
    )
  })

  test('where two services provide one handle, or one that the core provides', async () => {
    const source = folder('a', { 'a.service.ts': needing(aRef, greetingRef) })
    await expect(open(source, folder('b', { 'b.service.ts': needing(aRef, greetingRef) }))).rejects.toThrow(
      'features/b/b.service.ts and features/a/a.service.ts both provide "a.text"',
    )
    await expect(open(folder('c', { 'c.service.ts': needing(greetingRef, aRef) }))).rejects.toThrow(
      'features/c/c.service.ts and the core both provide "core.greeting"',
    )
  })

  test('where a file has not what its kind needs, has more, or needs what is not a handle', async () => {
    const { tables: _, ...feature } = defineFeature({ id: 'a', tables: [] })
    await expect(open(folder('a', {}, feature as Definition))).rejects.toEqual(
      refuses(
        'features/a/feature.ts has wrong fields: tables: is missing',
        'correct them in defineFeature({ … })',
      ),
    )
    const loop = defineLoop({ name: 'working', everyMs: 'soon' as never, needs: {}, run: async () => {} })
    const worker = await open(folder('a', { 'a.loop.ts': loop }))
    await expect(worker.loadLoops()).rejects.toThrow(
      'features/a/a.loop.ts has wrong fields: everyMs: Invalid input: expected number, received string',
    )
    const late = defineLoop({ name: 'working', everyMs: 1e12, needs: {}, run: async () => {} })
    const busy = await open(folder('a', { 'a.loop.ts': late }))
    await expect(busy.loadLoops()).rejects.toThrow('everyMs: Too big')
    const misspelled = { ...loop, everyMs: 1000, drian: async () => {} }
    const strange = await open(folder('a', { 'a.loop.ts': misspelled as never }))
    await expect(strange.loadLoops()).rejects.toThrow('wrong fields: Unrecognized key: "drian"')
    const settings = z.string() as never
    await expect(
      open(folder('a', {}, defineFeature({ id: 'a', tables: [], settings }) as Definition)),
    ).rejects.toThrow('features/a/feature.ts has wrong fields: settings: is not z.object({ … })')
    const command = defineCommand({ name: 'two words', description: 'Prints', add: () => {} })
    await expect(loadKind([folder('a', { 'a.command.ts': command })], 'command')).rejects.toThrow(
      'features/a/a.command.ts has wrong fields: name: is not of a-z, 0-9, _ and - after a letter',
    )
    const needs = { text: undefined as never }
    const service = defineService({ provides: aRef, needs, start: () => '' })
    await expect(open(folder('a', { 'a.service.ts': service }))).rejects.toEqual(
      refuses(
        'features/a/a.service.ts has wrong fields: needs.text: is not a handle: import it by the name under which its *.ref.ts, or mason-runtime/features, exports it',
        'correct them in defineService({ … })',
      ),
    )
  })

  test('where routes cannot be added', async () => {
    const add = (): never => {
      throw new Error("Method 'GET' already declared for route '/admin/v1/users'")
    }
    const features = await open(folder('a', { 'a.routes.ts': defineRoutes({ needs: {}, add }) }))
    await expect(features.addRoutes({} as never, {} as never)).rejects.toThrow(
      "features/a/a.routes.ts cannot be loaded: Method 'GET' already declared for route '/admin/v1/users'",
    )
  })

  test('with the error of a file itself, where that has a code', async () => {
    const error = new MasonError('invalid_settings', 'MASON_URL is missing', { remedy: 'set it' })
    const add = (): never => {
      throw error
    }
    const features = await open(folder('a', { 'a.routes.ts': defineRoutes({ needs: {}, add }) }))
    await expect(features.addRoutes({} as never, {} as never)).rejects.toBe(error)
  })

  test('where a resource of a business does not say how it stores the business', async () => {
    const input = z.strictObject({ business_id: z.string() })
    const resource = defineResource({
      path: '/admin/v1/notes',
      one: 'a note',
      many: 'notes',
      input,
      change: input,
      view: input,
      table: 'notes',
      idColumn: 'note_id',
    })
    const core = [provide(databaseRef, {} as never)]
    const features = await openFeatures([folder('a', { 'notes.resource.ts': resource })], core)
    await expect(features.addRoutes({} as never, {} as never)).rejects.toThrow(
      'features/a/notes.resource.ts cannot be loaded: its body has business_id, which ofBusiness stores: write ...ofBusiness',
    )
  })

  test('where a file of a product takes more than 60 s to load', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const load = async () => ({
      default: await loadInTime('a.loop.ts', () => new Promise<never>(() => {})),
    })
    const source = { folder: 'features/a', files: { 'a.loop.ts': load } }
    const refused = expect(loadKind([source], 'loop')).rejects.toThrow(
      'features/a/a.loop.ts takes more than 60 s to load',
    )
    await vi.advanceTimersByTimeAsync(60_000)
    await refused
  })

  test('where the suffix of a file is unknown, a folder is not a feature, or a file defines another kind', async () => {
    expect(() => readFileKind('features/a', 'a.cron.ts')).toThrow(
      'features/a/a.cron.ts has the unknown suffix .cron.ts',
    )
    await expect(open(folder('a', { 'a.cron.ts': null }))).rejects.toThrow('unknown suffix .cron.ts')
    await expect(open(folder('a', {}, null))).rejects.toThrow('features/a has no feature.ts')
    await expect(
      open(folder('a', { 'a.service.ts': defineRoutes({ needs: {}, add: () => {} }) })),
    ).rejects.toEqual(
      refuses(
        'features/a/a.service.ts has no service as its default export',
        'write: export default defineService({ … })',
      ),
    )
  })
})
