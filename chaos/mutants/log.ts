import { interleaved, type Mutant, testsOf } from './mutant.ts'

const append = testsOf('test/engine/runs/append.test.ts')
const batches = testsOf('test/engine/runs/append-batches.test.ts')
const file = 'src/engine/runs/append-statements.ts'
const batchFile = 'src/engine/runs/append-batches.ts'
const anyRows = batches(
  'combined appends commit exactly the right rows of any 64, and each caller gets its own answer',
)
const isEpoch = 'r.epoch = item.epoch'
const isSeq = 'r.next_seq = item.seq'
const migration = 'migrations/20261127_02_engine.sql'
const schema = testsOf('test/engine/runs/last-guards.test.ts')
const refused = 'an append is refused under another epoch, at another id, and when the run is not at work'

/** Guards of the log: nothing lost, doubled, changed or written by one who has lost the run. */
export const logMutants: readonly Mutant[] = [
  {
    name: 'epoch in append',
    file,
    edits: [{ from: isEpoch, to: `(\${form !== 'many'} OR ${isEpoch})` }],
    why: 'a worker that was frozen writes into a run that another has',
    caughtBy: [interleaved, ...append(refused)],
  },
  {
    name: 'epoch in finish',
    file,
    edits: [{ from: isEpoch, to: `(\${kind === 'finish'} OR ${isEpoch})` }],
    why: 'a worker that was frozen ends a run that another has',
    caughtBy: [
      interleaved,
      ...append('an append that commits after its lease expired is refused once another worker has the run'),
    ],
  },
  {
    name: 'next_seq in append',
    file,
    edits: [{ from: isSeq, to: `(\${form !== 'many'} OR ${isSeq})` }],
    why: 'an action gets an id that leaves a gap',
    caughtBy: append(refused),
  },
  {
    name: 'next_seq in finish',
    file,
    edits: [{ from: isSeq, to: `(\${kind === 'finish'} OR ${isSeq})` }],
    why: 'the end gets an id that leaves a gap or is taken',
    caughtBy: schema('the end of a run is refused at another id than the next'),
  },
  {
    name: 'status in append',
    file,
    edits: [{ from: "AND r.status = 'running'", to: '' }],
    why: 'an action comes after the end, or while the run waits',
    caughtBy: append(refused),
  },
  {
    name: 'attempt_id looked up when an append did nothing',
    file: 'src/engine/runs/run-log.ts',
    edits: [{ from: 'WHERE attempt_id = $1', to: 'WHERE attempt_id = $1 AND false' }],
    why: 'a commit whose answer was lost counts as a lost lease, and its action is done again',
    caughtBy: [interleaved, ...append('an append sent twice counts once, also its tokens')],
  },
  {
    name: 'attempt_id unique in the table',
    file: migration,
    edits: [{ from: 'attempt_id text NOT NULL UNIQUE', to: 'attempt_id text NOT NULL' }],
    why: 'the last line against one attempt with two actions',
    caughtBy: schema('the table of actions refuses a second row of one attempt'),
  },
  {
    name: 'primary key of actions',
    file: migration,
    edits: [{ from: ',\n  PRIMARY KEY (tenant, session_id, seq)', to: '' }],
    why: 'the last line against two actions with one id',
    caughtBy: schema('the table of actions refuses a second row of one id'),
  },
  {
    name: 'a turn once in its session',
    file: migration,
    edits: [{ from: '  UNIQUE (tenant, session_id, turn),\n', to: '' }],
    why: 'the last line against two runs of one turn',
    caughtBy: schema('the table of runs refuses a second run of one turn'),
  },
  {
    name: 'actions never change',
    file: migration,
    edits: [
      {
        from: 'CREATE TRIGGER actions_never_change BEFORE UPDATE ON actions FOR EACH STATEMENT EXECUTE FUNCTION refuse_update();',
        to: '',
      },
    ],
    why: 'a row of the log is rewritten',
    caughtBy: testsOf('test/infra/database/row-security.test.ts')(
      'actions cannot be changed by the API, the worker or the owner',
    ),
  },
  {
    name: 'response durable with the action',
    file,
    edits: [{ from: "e.status = 'sent'", to: "e.status = 'never'" }],
    why: 'a side effect that was answered is sent again after a take-over',
    caughtBy: [
      interleaved,
      ...testsOf('test/engine/runs/effects.test.ts')(
        'a side effect that has succeeded is returned and not done again',
      ),
    ],
  },
  {
    name: 'outbox: wake-up for the next run of the session',
    file,
    edits: [{ from: "r.status = 'queued' ORDER BY", to: "r.status = 'none' ORDER BY" }],
    why: 'the next turn waits for the reconciler',
    caughtBy: [
      interleaved,
      ...append(
        'the end of a run sets status, result and time, releases the lease and wakes the next run of its session',
      ),
    ],
  },
  {
    name: 'an action undoes the count of claims without one',
    file,
    edits: [{ from: 'stalls = 0, ', to: '' }],
    why: 'a long run that changes hands often is given up as poison',
    caughtBy: [
      interleaved,
      ...testsOf('test/engine/runs/claim.test.ts')(
        'claims without an action are counted; an action or a clean hand-back undoes the count',
      ),
    ],
  },
  {
    name: 'epoch in a batch',
    file,
    edits: [{ from: isEpoch, to: `(\${form === 'many'} OR ${isEpoch})` }],
    why: 'a worker that was frozen writes into a run that another has, beside runs of its own',
    caughtBy: anyRows,
  },
  {
    name: 'next_seq in a batch',
    file,
    edits: [{ from: isSeq, to: `(\${form === 'many'} OR ${isSeq})` }],
    why: 'an action gets an id that leaves a gap',
    caughtBy: anyRows,
  },
  {
    name: 'one row of a run in a batch',
    file: batchFile,
    edits: [{ from: '[`${row.tenant}/${row.run_id}`]', to: '[row.attempt_id]' }],
    why: 'of two rows of one run only the first fits, and the other costs a statement of its own',
    caughtBy: batches('combined appends never hold two rows of one run'),
  },
  {
    name: 'a row that the database refuses costs itself alone',
    file: batchFile,
    edits: [
      { from: 'writeAlone: async () => false', to: "writeAlone: () => Promise.reject(new Error('refused'))" },
    ],
    why: 'one bad row fails the runs of up to 63 others',
    caughtBy: anyRows,
  },
  {
    name: 'a row that was left out goes alone',
    file: 'src/engine/runs/run-log.ts',
    edits: [{ from: 'await appendAlone(sql, row)', to: 'throw createLeaseLostError()' }],
    why: 'a run whose row was locked for a moment counts as lost',
    caughtBy: [
      ...anyRows,
      ...batches(
        'combined appends leave out a run whose row is locked, which goes alone and waits; the others do not',
      ),
    ],
  },
  {
    name: 'only what was committed counts',
    file: batchFile,
    edits: [{ from: 'committed.has(append.row.attempt_id)', to: 'true' }],
    why: 'an action counts as durable that is not',
    caughtBy: anyRows,
  },
  {
    name: 'a run whose lease is lost leaves the queue',
    file: batchFile,
    edits: [{ from: '!lost.get(append)', to: 'append' }],
    why: 'a worker that was frozen sends what it held back',
    caughtBy: anyRows,
  },
  {
    name: 'a statement without an answer is sent again',
    file: 'src/engine/runs/leases.ts',
    edits: [{ from: 'if (!isDatabaseUnavailable(error)) throw error', to: 'throw error' }],
    why: 'one lost connection loses a run to the end of its lease',
    caughtBy: append('an append goes through when the connection is lost after the statement was done'),
  },
  {
    name: 'a process that was frozen does not act on an answer',
    file: 'src/engine/runs/leases.ts',
    edits: [{ from: '        lease.check()', to: '' }],
    why: 'a worker frozen before it sends would send beside the one that took over',
    caughtBy: append('an append whose answer comes when the lease is too old to act on gives the run up'),
  },
  {
    name: 'a statement that hangs is given up with the lease',
    file: 'src/engine/runs/leases.ts',
    edits: [
      {
        from: 'await unlessAborted(send(), lease.signal)',
        to: 'await send()',
      },
    ],
    why: 'a worker whose connection hangs keeps its place for ever',
    caughtBy: append(
      'an append whose connection is lost until the lease is gives the run up, and so does one that hangs',
    ),
  },
  {
    name: 'one queue for the appends of parallel branches',
    file: 'src/graph/live-run.ts',
    edits: [{ from: 'tail = turn.catch(() => {})', to: '' }],
    why: 'two branches commit under one id, and one of them loses the run',
    caughtBy: append(
      'a live run takes the appends of parallel branches in one order, without a gap, and holds what is stored',
    ),
  },
]
