import { interleaved, type Mutant, testsOf } from './mutant.ts'

const claim = testsOf('test/engine/runs/claim.test.ts')
const leases = testsOf('test/engine/runs/lease-renewal.test.ts')
const relay = testsOf('test/engine/runs/relay.test.ts')
const guards = testsOf('test/engine/runs/last-guards.test.ts')
const learning = testsOf('test/features/user-memory/learning.test.ts')
const queue = 'src/features/user-memory/store/distillation-queue.ts'
const file = 'src/engine/runs/claim.ts'
const lease = 'src/engine/runs/leases.ts'

/** Guards of who has a run: claims and leases. */
export const claimMutants: readonly Mutant[] = [
  {
    name: 'a claim raises the epoch',
    file,
    edits: [{ from: 'epoch = epoch + 1', to: 'epoch = GREATEST(epoch, 1)' }],
    why: 'a worker that was frozen cannot be distinguished from the one that has its run now',
    caughtBy: [interleaved, ...claim('a claim takes over when the lease has ended, under a higher epoch')],
  },
  {
    name: 'only a run whose lease is free or has ended',
    file,
    edits: [
      {
        after: 'CROSS JOIN LATERAL',
        from: 'AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp())',
        to: '',
      },
      {
        after: 'pick AS (',
        from: 'AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp())',
        to: '',
      },
    ],
    why: 'two workers do the same work at once',
    caughtBy: [
      interleaved,
      ...claim('a claim finds nothing where nothing is due, and never what another worker holds'),
    ],
  },
  {
    name: 'session order: earlier turn unfinished',
    file,
    edits: [{ from: 'AND r.turn = (SELECT e.turn', to: 'AND r.turn >= (SELECT e.turn' }],
    why: 'two turns of a session write into one log',
    caughtBy: [
      interleaved,
      ...claim(
        'the order of a session is that of its turns, whatever their priority, also while one waits for a person',
      ),
    ],
  },
  {
    name: 'ids go on where the session stands',
    file,
    edits: [{ from: 'COALESCE(max(seq), 0) + 1', to: 'COALESCE(min(seq), 0) + 1' }],
    why: 'the second turn begins with ids that are taken',
    caughtBy: [interleaved, ...claim('a claim continues the action ids of its session')],
  },
  {
    name: 'not before it is due',
    file,
    edits: [{ from: 'AND r.run_at <= clock_timestamp()', to: '' }],
    why: 'a delay and a retry_after are ignored',
    caughtBy: [
      interleaved,
      ...claim('a claim finds nothing where nothing is due, and never what another worker holds'),
    ],
  },
  {
    name: 'concurrency of a business',
    file,
    edits: [{ from: 'b.max_concurrency IS NULL OR', to: 'true OR' }],
    why: 'one business takes every worker',
    caughtBy: [
      interleaved,
      ...claim('ten claimers at once never start more runs of a business than its limit allows'),
    ],
  },
  {
    name: 'two claims at one moment exclude each other',
    file,
    edits: [{ from: ' AND b.claims = c.claims', to: '' }],
    why: 'two claims that look at the same moment both find a free place',
    caughtBy: claim('ten claimers at once never start more runs of a business than its limit allows'),
  },
  {
    name: 'stalls: claims without an action are counted',
    file,
    edits: [{ from: 'stalls = stalls + 1', to: 'stalls = stalls' }],
    why: 'a run that kills its workers kills them for ever',
    caughtBy: [
      interleaved,
      ...relay('poison a run that five workers took without one action fails, its neighbours are unharmed'),
    ],
  },
  {
    name: 'poison: given up after five',
    file: 'src/engine/worker/worker.ts',
    edits: [{ from: 'claim.stalls > maxStalls ?', to: 'claim.stalls > 1e9 ?' }],
    why: 'a run that kills its workers kills them for ever',
    caughtBy: relay(
      'poison a run that five workers took without one action fails, its neighbours are unharmed',
    ),
  },
  {
    name: 'epoch in heartbeat',
    file: lease,
    edits: [{ from: 'r.epoch = held.epoch AND ', to: '' }],
    why: 'a worker that was frozen keeps the lease of another alive, which may be dead',
    caughtBy: [interleaved],
  },
  {
    name: 'a lease that has ended stays ended',
    file: lease,
    edits: [{ from: 'AND r.lease_until > clock_timestamp()', to: '' }],
    why: 'a business has more runs at work than it may',
    caughtBy: [interleaved, ...leases('a heartbeat does not bring a lease back that has ended')],
  },
  {
    name: 'self-fence at 80 % of the lease',
    file: lease,
    edits: [{ from: 'leaseMs * 0.8', to: 'leaseMs * 80' }],
    why: 'a worker cut off from the database acts on beside the one that took over',
    caughtBy: leases(
      'a database that does not answer loses the run at 80 % of its lease, before another worker can take it',
    ),
  },
  {
    name: 'self-fence counts from when the renewal was sent',
    file: lease,
    edits: [{ from: 'lease.renewedAt = sentAt', to: 'lease.renewedAt = nowMs()' }],
    why: 'a slow answer makes a lease look younger than it is',
    caughtBy: guards('a heartbeat whose answer is late does not make the lease look younger than it is'),
  },
  {
    name: 'a worker that lost its run stops its work',
    file: 'src/engine/worker/worker.ts',
    edits: [{ from: "control.abort(new RunStoppedError({ kind: 'lease_lost' }))", to: '' }],
    why: 'model and tools are paid for a run that another has',
    caughtBy: guards('a worker that has lost its run lets go of the model call it waits for'),
  },
  {
    name: 'cancel requests are looked for',
    file: lease,
    edits: [
      { from: 'WHERE r.status IS NULL OR r.cancel_requested_at IS NOT NULL', to: 'WHERE r.status IS NULL' },
    ],
    why: 'a cancel whose hint was lost is not heard',
    caughtBy: leases('a heartbeat learns within a second that the run is to be cancelled, and why'),
  },
  {
    name: 'a claim that has not begun is one for all, and no more',
    file: 'src/engine/worker/worker.ts',
    edits: [{ from: 'if (!woken) willClaimAny = false', to: '' }],
    why: 'after its first look a worker finds what is due by wake-ups alone',
    caughtBy: relay(
      'a worker asks once for what is due however often it polls meanwhile, and misses nothing',
    ),
  },
  {
    name: 'a claim follows where runs of a business were held up',
    file: 'src/engine/worker/worker.ts',
    edits: [{ from: 'if (waits.size > 0) pollIn(Math.min(...waits.values()))', to: '' }],
    why: 'runs whose wake-ups were passed on or dropped wait for the reconciler',
    caughtBy: relay(
      'a worker beside a flood claims the runs of a business that it held up, without another wake-up and while none has ended',
    ),
  },
  {
    name: 'a wake-up of a business whose begun runs wait asks nothing',
    file: 'src/engine/worker/worker.ts',
    edits: [{ from: 'if (woken && listDelayed().has(woken.tenant)) return null', to: '' }],
    why: 'a worker that is busy with one business spends permits and claims on finding nothing',
    caughtBy: relay(
      'a worker beside a flood asks the database nothing at a wake-up of a business whose begun runs wait for permits, and claims once they work',
    ),
  },
  {
    name: 'the tries of a row fence learning',
    file: queue,
    edits: [{ after: 'DELETE FROM distillations d USING', from: ' AND d.tries = c.tries', to: '' }],
    why: 'a worker whose time is over writes what another worker is learning',
    caughtBy: learning(
      'of a group the runs are left out that another worker has claimed since, and two that read one row never both have it',
    ),
  },
  {
    name: 'a lost run is left out of its group',
    file: 'src/features/user-memory/store/distill-run.ts',
    edits: [{ from: 'completed.has(run.run_id) && ', to: '' }],
    why: 'its turn is written by the worker that lost it',
    caughtBy: learning(
      'of a group the runs are left out that another worker has claimed since, and two that read one row never both have it',
    ),
  },
  {
    name: 'runs that fail together are tried one by one',
    file: 'src/features/user-memory/store/memory-worker.ts',
    edits: [{ from: 'runs.length > 1 && !deadline.signal.aborted', to: 'false' }],
    why: 'nothing is learned from all runs of a user because of one, and each loses a try',
    caughtBy: learning(
      'runs of one user that no model is asked about are learned from together; one that fails costs only its own try',
    ),
  },
]
