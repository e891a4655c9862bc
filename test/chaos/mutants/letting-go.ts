import { interleaved, type Mutant, testsOf } from './mutant.ts'

const relay = testsOf('test/integration/relay.test.ts')
const guards = testsOf('test/integration/last-guards.test.ts')
const release = 'src/infra/runs/release.ts'
const settle = 'src/infra/runs/settle.ts'
const rows = 'src/infra/runs/relay.ts'
const epoch = { from: 'AND epoch = $3', to: 'AND $3::int > 0' }

/** Guards of letting go of a run, of ending it without a worker, and of what must come true without a bell. */
export const lettingGoMutants: readonly Mutant[] = [
  ...(['parkRun', 'requeueRun', 'handBackRun', 'giveUpRun'] as const).map(
    (name): Mutant => ({
      name: `epoch in ${name}`,
      file: release,
      edits: [{ after: `export const ${name}`, ...epoch }],
      why: 'a worker that was frozen takes the run from the one that has it now',
      caughtBy: [
        interleaved,
        ...guards('a worker that has lost its run cannot let it wait, queue it, hand it back or give it up'),
      ],
    }),
  ),
  {
    name: 'cancel guard in park',
    file: release,
    edits: [{ after: 'export const parkRun', from: 'AND cancel_requested_at IS NULL', to: '' }],
    why: 'a run that was cancelled waits for a person',
    caughtBy: [
      interleaved,
      ...testsOf('test/integration/input.test.ts')(
        'a cancel that comes as the run is about to wait ends it then and there',
      ),
    ],
  },
  {
    name: 'cancel guard in requeue',
    file: release,
    edits: [{ after: 'export const requeueRun', from: 'AND cancel_requested_at IS NULL', to: '' }],
    why: 'a run that was cancelled waits until it may retry',
    caughtBy: [interleaved],
  },
  {
    name: 'outbox: bell of a run that is handed back',
    file: release,
    edits: [
      {
        from: 'bell AS (INSERT INTO outbox (tenant, run_id) SELECT $1, run_id FROM mine)',
        to: 'bell AS (SELECT)',
      },
    ],
    why: 'a rolling restart leaves runs to the reconciler',
    caughtBy: [
      interleaved,
      ...relay(
        'a worker that is told to stop hands its runs back at once, for another to go on from the last action',
      ),
    ],
  },
  {
    name: 'settling raises the epoch',
    file: settle,
    edits: [{ from: 'SET epoch = epoch + 1, status = $3', to: 'SET status = $3' }],
    why: 'the last line against a late worker of a run that was settled',
    caughtBy: [interleaved],
  },
  {
    name: 'settling leaves alone what is at work',
    file: settle,
    edits: [{ from: "AND status IN ('queued', 'input_required')", to: '' }],
    why: 'a run gets a second end',
    caughtBy: guards('settling leaves alone a run that is at work, and one that may still wait'),
  },
  {
    name: 'only what still waits too long expires',
    file: settle,
    edits: [{ from: 'AND (NOT $5::boolean OR', to: 'AND ($5::boolean IS NOT NULL OR' }],
    why: 'a run that was begun as the reconciler came is failed as never begun',
    caughtBy: guards('settling leaves alone a run that is at work, and one that may still wait'),
  },
  {
    name: 'a turn is opened before it ends',
    file: settle,
    edits: [{ from: 'AND (next_seq IS NULL OR next_seq > first_seq)', to: '' }],
    why: 'a turn begins with its end',
    caughtBy: [
      interleaved,
      ...testsOf('test/integration/cancel.test.ts')(
        'a run that was claimed and handed back before its first action is left to the next worker, which opens its turn and ends it',
      ),
    ],
  },
  {
    name: 'outbox: bell for the next run after one that was settled',
    file: settle,
    edits: [{ from: "status = 'queued' ORDER BY turn", to: "status = 'none' ORDER BY turn" }],
    why: 'the next turn waits for the reconciler',
    caughtBy: [interleaved],
  },
  {
    name: 'a bell leaves the outbox only once the queue has it',
    file: rows,
    edits: [
      {
        from: 'await queues.ringMany(rows.map(bellOf))',
        to: 'await queues.ringMany(rows.map(bellOf)).catch(() => {})',
      },
    ],
    why: 'bells are lost while the queue is down',
    caughtBy: relay('the outbox holds a bell until the queue has it, also while the queue is down'),
  },
  {
    name: 'reconciler rings',
    file: rows,
    edits: [
      {
        from: 'if (rows.length > 0) await queues.ringMany',
        to: 'if (rows.length < 0) await queues.ringMany',
      },
    ],
    why: 'a run whose bell was lost is never worked on',
    caughtBy: [
      interleaved,
      ...relay('the reconciler rings for what could be worked on and is not, and for nothing else'),
    ],
  },
  {
    name: 'reconciler sees runs whose worker died',
    file: rows,
    edits: [{ after: 'const runnableStatement', from: "IN ('queued', 'running')", to: "IN ('queued')" }],
    why: 'a run whose worker died hangs',
    caughtBy: [
      interleaved,
      ...relay('the reconciler rings for what could be worked on and is not, and for nothing else'),
    ],
  },
  {
    name: 'a worker with a free place looks for itself',
    file: 'src/infra/worker/start.ts',
    edits: [{ from: 'if (worker.idle)', to: 'if (options.leaseMs < 0)' }],
    why: 'nothing is done while the queue is down',
    caughtBy: relay('when every bell is lost runs get done all the same, in a session one after the other'),
  },
  {
    name: 'keys are kept two days',
    file: rows,
    edits: [{ from: "interval '48 hours'", to: "interval '1 hour'" }],
    why: 'a request that is sent again the next morning becomes a second run',
    caughtBy: relay('the reconciler drops keys after two days and none before'),
  },
]
