import { interleaved, type Mutant, testsOf } from './mutant.ts'

const effects = testsOf('test/engine/runs/effects.test.ts')
const guards = testsOf('test/engine/runs/last-guards.test.ts')
const egress = testsOf('test/infra/egress/egress.test.ts')
const walk = testsOf('test/graph/walk.test.ts')
const route = testsOf('test/graph/route.test.ts')
const stops = testsOf('test/graph/stops.test.ts')
const file = 'src/engine/runs/effects.ts'
const protocol = 'src/state/effect-protocol.ts'

/** Guards of what a run does: decide before acting, and each side effect at most once. */
export const effectMutants: readonly Mutant[] = [
  {
    name: 'epoch in effect writes',
    file,
    edits: [{ from: 'AND epoch = $3', to: 'AND $3::int > 0' }],
    why: 'a worker that was frozen sends beside the one that has the run now',
    caughtBy: [interleaved, ...effects('a worker that has lost the run neither writes an intent nor sends')],
  },
  {
    name: 'status in effect writes',
    file,
    edits: [{ from: "AND status = 'running' FOR SHARE", to: 'FOR SHARE' }],
    why: 'a run that was parked or handed back still acts',
    caughtBy: guards('a worker that has handed its run back neither writes an intent nor sends'),
  },
  {
    name: 'effect writes exclude a claim at the same moment',
    file,
    edits: [{ from: ' FOR SHARE)', to: ')' }],
    why: 'a send is allowed beside a claim that commits at that moment',
    caughtBy: guards(
      'two at the same moment a side effect at the moment of a take-over waits for it and is refused',
    ),
  },
  {
    name: 'stored bytes are sent',
    file,
    edits: [{ from: 'request: effect.request', to: 'request: Buffer.from(request.request)' }],
    why: 'other bytes go out under the key of the first ones',
    caughtBy: [
      interleaved,
      ...effects(
        'a worker that takes over and finds it sent sends the stored bytes again under the same key, to a provider that knows keys',
      ),
    ],
  },
  {
    name: '`sent` before the call',
    file,
    edits: [
      {
        from: 'markSent: () => write(sentStatement)',
        to: 'markSent: async () => {}',
      },
    ],
    why: 'a send that left no record is sent again',
    caughtBy: [
      interleaved,
      ...effects('a side effect is written down as intent, then as sent, before anything leaves'),
    ],
  },
  {
    name: 'what has succeeded is not done again',
    file,
    edits: [{ from: "if (effect.status === 'succeeded')", to: "if (effect.status === ('never' as string))" }],
    why: 'a call that goes through twice loses its response',
    caughtBy: effects('a side effect that has succeeded is returned and not done again'),
  },
  {
    name: 'idempotency window of a keyed provider',
    file: protocol,
    edits: [{ from: 'safeWindowShare * (target.windowMs ?? 0)', to: 'Number.POSITIVE_INFINITY' }],
    why: 'the provider has forgotten the key and acts a second time',
    caughtBy: effects(
      'a worker that takes over and finds it sent does not once four fifths of the time the provider keeps keys are over',
    ),
  },
  {
    name: 'look up before sending again',
    file: protocol,
    edits: [
      {
        from: 'const response = await decision.lookup(effect.key, signal)',
        to: 'const response = null as Response | null',
      },
    ],
    why: 'a provider without keys acts a second time',
    caughtBy: [
      interleaved,
      ...effects(
        'a worker that takes over and finds it sent looks it up first where that can be done, and does not send what was done',
      ),
    ],
  },
  {
    name: 'the lease is looked at between look-up and send',
    file: protocol,
    edits: [{ from: '    checkLease()\n', to: '' }],
    why: 'a process that was frozen during the look-up sends beside its successor',
    caughtBy: effects(
      'a worker that takes over and finds it sent does not send what it looked up under a lease that is over',
    ),
  },
  {
    name: 'the lease is looked at before the first byte',
    file: protocol,
    edits: [
      {
        from: 'effect.key, checkLease, signal)',
        to: 'effect.key, () => {}, signal)',
      },
    ],
    why: 'a process that was frozen while it connected sends beside its successor',
    caughtBy: effects(
      'a worker that takes over and finds it sent gets a last check of its lease, for the moment before the first byte',
    ),
  },
  {
    name: 'nothing is sent after a last look that throws',
    file: 'src/infra/egress/response.ts',
    edits: [{ from: '          beforeSend()\n', to: '' }],
    why: 'a process that was frozen while it connected sends beside its successor',
    caughtBy: egress(
      'requests ask once more in the moment before the first byte, and send nothing where that throws',
    ),
  },
  {
    name: 'unknown is for an operator',
    file: protocol,
    edits: [{ from: "!target.lookup) return 'unknown'", to: "!target.lookup) return 'send'" }],
    why: 'a provider that can neither dedupe nor tell acts a second time',
    caughtBy: [
      interleaved,
      ...effects(
        'a worker that takes over and finds it sent leaves it to an operator when the provider offers neither keys nor a look-up',
      ),
    ],
  },
  {
    name: 'sent again only on the word of an operator',
    file,
    edits: [
      {
        from: "if (effect.status === 'unknown') throw createUnknownEffectError(effectId, effect)",
        to: `if (effect.status === 'unknown')
    await sql.query("UPDATE effects SET status = 'intent' WHERE effect_id = $1", [effectId])`,
      },
    ],
    why: 'what stays unknown is sent again by itself',
    caughtBy: effects(
      'a worker that takes over and finds it sent does not once four fifths of the time the provider keeps keys are over',
    ),
  },
  {
    name: 'one key for each call',
    file,
    edits: [{ from: 'call.index}`)', to: 'call.plan_seq}`)' }],
    why: 'of two calls in one plan only the first is done',
    caughtBy: effects('a side effect of each call has its own key, which stays the same'),
  },
  {
    name: 'the word of an operator that it took place counts',
    file: 'src/engine/runs/unknown-effects.ts',
    edits: [{ from: 'const settled = took_place ?', to: 'const settled = took_place && run?.ended ?' }],
    why: 'what took place is done again',
    caughtBy: testsOf('test/engine/runs/unknown-effects.test.ts')(
      'a side effect whose outcome is unknown is listed, settled once by an operator, and its run goes on with what the provider answered',
    ),
  },
  {
    name: 'stored arguments: a take-over goes on with the plan that stands',
    file: 'src/graph/route.ts',
    edits: [
      {
        from: 'if (fronts.length > 0) {',
        to: "if (entering && fronts.length > 0) return [{ node: 'planner', call: null }]\n  if (fronts.length > 0) {",
      },
    ],
    why: 'the model decides a second time, otherwise, and both are done',
    caughtBy: [
      ...walk(
        'a run of the graph that is taken over after any action ends the same, and no call has two actions',
      ),
      ...testsOf('test/engine/runs/input.test.ts')(
        'a run that asks a person goes on with the stored call: the planner is not asked again before the answer is its result',
      ),
    ],
  },
  {
    name: 'decide before act: no node goes on from an action before it is committed',
    file: 'src/graph/live-run.ts',
    edits: [
      { from: 'await commit(entry, prepared.patch)\n', to: '\n' },
      {
        from: 'events.onAction(entry.seq)',
        to: 'await commit(entry, prepared.patch)\n      events.onAction(entry.seq)',
      },
    ],
    why: 'a branch beside it acts on a plan that would be unknown after a crash',
    caughtBy: guards('a live run holds no action, and starts no next step, before it is committed'),
  },
  {
    name: 'only calls without an action are made',
    file: 'src/state/calls.ts',
    edits: [{ from: 'isStopped || answers[index] || lanes.has(lane)', to: 'isStopped || lanes.has(lane)' }],
    why: 'a take-over makes calls again that were answered',
    caughtBy: route('route a run taken over after any action goes on with exactly what has no action yet'),
  },
  {
    name: 'calls that change something come one after the other',
    file: 'src/state/calls.ts',
    edits: [
      {
        from: 'call.index >= sideBySide ? orderedLane : (call.exclusive ?? call.index)',
        to: 'call.exclusive ?? call.index',
      },
    ],
    why: 'a later call acts although an earlier one has failed',
    caughtBy: testsOf('test/graph/tools.test.ts')(
      'tools calls that change something keep their order, each after the other has its action',
    ),
  },
  {
    name: 'a fault that was written down ends the run',
    file: 'src/graph/execute.ts',
    edits: [{ from: 'run.outcome ??= readRecordedFailure(run.actions)', to: '' }],
    why: 'a run whose worker died between its fault and its end is said to have completed',
    caughtBy: stops('a node that fails fails the run the same way when the worker dies before the end'),
  },
  {
    name: 'a stopped visit commits nothing more',
    file: 'src/graph/visit.ts',
    edits: [{ from: 'if (!effect) signal.throwIfAborted()', to: '' }],
    why: 'a run that is cancelled while its turn is being opened opens it twice',
    caughtBy: stops(
      'a run that is stopped while its turn is being opened opens it once, whatever the opening waits for',
    ),
  },
  {
    name: 'a stopped visit still records its side effect',
    file: 'src/graph/visit.ts',
    edits: [{ from: 'if (!effect) signal.throwIfAborted()', to: 'signal.throwIfAborted()' }],
    why: 'what took place is in no action of the run that was cancelled',
    caughtBy: stops('a run that is stopped records the side effect that took place before its end'),
  },
]
