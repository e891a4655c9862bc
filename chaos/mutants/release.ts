import { interleaved, type Mutant, testsOf } from './mutant.ts'

const relay = testsOf('test/engine/runs/relay.test.ts')
const locks = testsOf('test/engine/runs/wait-locks.test.ts')
const guards = testsOf('test/engine/runs/last-guards.test.ts')
const release = 'src/engine/runs/release.ts'
const waits = 'src/engine/runs/waits.ts'
const outage = 'src/engine/runs/model-outage.ts'
const settle = 'src/engine/runs/settlement.ts'
const rows = 'src/engine/runs/relay.ts'
const cancelled = 'a run that is to be cancelled is neither queued again nor left waiting for a model'
const epoch = { from: 'AND epoch = $epoch', to: 'AND $epoch::int > 0' }

/** Guards of releasing a run, of ending it without a worker, and of what must happen without a wake-up. */
export const releaseMutants: readonly Mutant[] = [
  ...(['parkStatement', 'requeueRun', 'handBackRun', 'failPoisonedRun'] as const).map(
    (name): Mutant => ({
      name: `epoch in ${name}`,
      file: release,
      edits: [{ after: `const ${name} =`, ...epoch }],
      why: 'a worker that was frozen takes the run from the one that has it now',
      caughtBy: [
        interleaved,
        ...guards('a worker that has lost its run cannot let it wait, queue it, hand it back or give it up'),
      ],
    }),
  ),
  {
    name: 'epoch in waitForModel',
    file: outage,
    edits: [
      { from: "AND epoch = $3 AND status = 'running'", to: "AND $3::int > 0 AND status = 'running'" },
      { from: 'AND r.epoch = $3`', to: 'AND $3::int > 0`' },
    ],
    why: 'a worker that was frozen takes the run from the one that has it now',
    caughtBy: [
      interleaved,
      ...guards('a worker that has lost its run cannot let it wait, queue it, hand it back or give it up'),
    ],
  },
  {
    name: 'cancel guard in waitForModel',
    file: outage,
    edits: [{ from: 'AND cancel_requested_at IS NULL', to: '' }],
    why: 'a run that was cancelled waits for a model',
    caughtBy: [interleaved, ...guards(cancelled)],
  },
  {
    name: 'a wait for a model is no stall',
    file: outage,
    edits: [{ from: 'stalls = GREATEST(stalls - 1, 0), ', to: '' }],
    why: 'a long outage is taken for a run that kills its workers',
    caughtBy: testsOf('test/engine/runs/outage.test.ts')(
      'a run whose vendor is down is not poison however often it is claimed, and a worker that dies in between is taken over',
    ),
  },
  {
    name: 'cancel guard in park',
    file: release,
    edits: [{ after: 'const parkStatement', from: 'AND cancel_requested_at IS NULL', to: '' }],
    why: 'a run that was cancelled waits for a person',
    caughtBy: [
      interleaved,
      ...testsOf('test/engine/runs/input.test.ts')(
        'a cancel that comes as the run is about to wait ends it then and there',
      ),
    ],
  },
  {
    name: 'cancel guard in requeue',
    file: release,
    edits: [{ after: 'export const requeueRun', from: 'AND cancel_requested_at IS NULL', to: '' }],
    why: 'a run that was cancelled waits until it may retry',
    caughtBy: [interleaved, ...guards(cancelled)],
  },
  {
    name: 'outbox: wake-up of a run that is handed back',
    file: release,
    edits: [
      {
        from: 'wake_up AS (INSERT INTO outbox (tenant, run_id) SELECT $tenant, run_id FROM mine)',
        to: 'wake_up AS (SELECT)',
      },
    ],
    why: 'a rolling restart leaves runs to the reconciler',
    caughtBy: [
      interleaved,
      ...relay(
        'a worker that is stopped hands its runs back at once, for another to go on from the last action',
      ),
    ],
  },
  {
    name: 'parking locks the run before it looks at its waits',
    file: release,
    edits: [{ after: 'const lockStatement', from: ' FOR NO KEY UPDATE`', to: '`' }],
    why: 'a wait that is being ended is missed, and the run waits for ever',
    caughtBy: locks(
      'a wait that ends as its run is parked is seen by parking that comes as it is being ended',
    ),
  },
  {
    name: 'ending a wait locks the run before it looks at it',
    file: 'migrations/20261127_02_engine.sql',
    edits: [{ from: ' FOR NO KEY UPDATE;', to: ';' }],
    why: 'a run that is being parked is missed, and waits for ever',
    caughtBy: locks('a wait that ends as its run is parked wakes a run that is being parked'),
  },
  {
    name: 'answering locks the run before it looks at it',
    file: 'src/engine/runs/input-answers.ts',
    edits: [{ from: '\n  FOR NO KEY UPDATE OF r`', to: '`' }],
    why: 'a run that is being parked again misses the answer',
    caughtBy: locks('a question beside a wait that is answered as its run is being parked again wakes it'),
  },
  {
    name: 'reconciler sees waits that have ended unseen',
    file: waits,
    edits: [{ from: "unseenSql = 'w.done_at IS NOT NULL AND w.seen_at IS NULL'", to: "unseenSql = 'false'" }],
    why: 'a run whose wake-up was missed waits for ever',
    caughtBy: locks('the reconciler wakes a run whose wait has ended unseen'),
  },
  {
    name: 'reconciler wakes for waits that are over their time',
    file: waits,
    edits: [
      {
        from: "dueSql = 'w.done_at IS NULL AND LEAST(w.due_at, w.poll_at) <= clock_timestamp()'",
        to: "dueSql = 'false'",
      },
    ],
    why: 'a run waits for ever for what has expired, and no job is polled',
    caughtBy: locks(
      'the reconciler ends what is over its time as expired, and wakes for a poll without ending it',
    ),
  },
  {
    name: 'starting a wait locks the run',
    file: waits,
    edits: [{ from: 'AND cancel_requested_at IS NULL FOR SHARE)', to: 'AND cancel_requested_at IS NULL)' }],
    why: 'another worker claims the run, and does not see what is being started',
    caughtBy: locks('starting lets no other claim come before it'),
  },
  {
    name: 'no worker knows a node: counted from the last wait',
    file: release,
    edits: [
      {
        from: '(SELECT max(GREATEST(w.done_at, w.poll_at)) FROM waits w WHERE w.tenant = r.tenant AND w.run_id = r.run_id)',
        to: 'NULL::timestamptz',
      },
    ],
    why: 'a run that has waited for an hour fails in the middle of a rolling upgrade',
    caughtBy: guards(
      'a run that its worker does not know how to go on with is left to others for as long after the last of its waits has ended',
    ),
  },
  {
    name: 'an end queues a run once',
    file: release,
    edits: [
      {
        after: 'const parkStatement',
        from: 'w.done_at IS NOT NULL AND w.seen_at IS NULL)',
        to: 'w.done_at IS NOT NULL)',
      },
    ],
    why: 'a run with a wait of an earlier call is claimed again and again',
    caughtBy: locks(
      'a wait that ends as its run is parked wakes it once, in whatever order both come, and an end that a claim has read wakes nothing',
    ),
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
    edits: [{ from: "AND status IN ('queued', 'input_required', 'waiting')", to: '' }],
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
      ...testsOf('test/engine/runs/cancel.test.ts')(
        'a run that was claimed and handed back before its first action is left to the next worker, which opens its turn and ends it',
      ),
    ],
  },
  {
    name: 'outbox: wake-up for the next run after one that was settled',
    file: settle,
    edits: [{ from: "status = 'queued' ORDER BY turn", to: "status = 'none' ORDER BY turn" }],
    why: 'the next turn waits for the reconciler',
    caughtBy: [interleaved],
  },
  {
    name: 'a wake-up leaves the outbox only once the queue has it',
    file: rows,
    edits: [
      {
        from: 'await queues.wakeMany(rows.map(toWakeUp))\n  await',
        to: 'await queues.wakeMany(rows.map(toWakeUp)).catch(() => {})\n  await',
      },
    ],
    why: 'wake-ups are lost while the queue is down',
    caughtBy: relay('the outbox holds a wake-up until the queue has it, also while the queue is down'),
  },
  {
    name: 'reconciler rings',
    file: rows,
    edits: [
      {
        from: 'if (rows.length > 0) await queues.wakeMany',
        to: 'if (rows.length < 0) await queues.wakeMany',
      },
    ],
    why: 'a run whose wake-up was lost is never worked on',
    caughtBy: [
      interleaved,
      ...relay('the reconciler wakes runs that are due and not claimed, and no others'),
    ],
  },
  {
    name: 'reconciler sees runs whose worker died',
    file: rows,
    edits: [{ after: 'const runnableStatement', from: "IN ('queued', 'running')", to: "IN ('queued')" }],
    why: 'a run whose worker died hangs',
    caughtBy: [
      interleaved,
      ...relay('the reconciler wakes runs that are due and not claimed, and no others'),
    ],
  },
  {
    name: 'a worker with a free place looks for itself',
    file: 'src/engine/worker/worker-loops.ts',
    edits: [{ from: 'if (worker.hasCapacity)', to: 'if (options.leaseMs < 0)' }],
    why: 'nothing is done while the queue is down',
    caughtBy: relay(
      'when every wake-up is lost runs get done all the same, in a session one after the other',
    ),
  },
  {
    name: 'keys are kept two days',
    file: rows,
    edits: [{ from: "interval '48 hours'", to: "interval '1 hour'" }],
    why: 'a request that is sent again the next morning becomes a second run',
    caughtBy: relay('the reconciler drops keys after two days and none before'),
  },
]
