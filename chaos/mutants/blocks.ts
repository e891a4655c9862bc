import { type Mutant, testsOf } from './mutant.ts'

const blocks = testsOf('test/graph/blocks.test.ts')
const route = testsOf('test/graph/route.test.ts')
const references = testsOf('test/graph/references.test.ts')
const python = testsOf('test/state/text/python-references.test.ts')
const calls = 'src/state/calls.ts'
const visit = 'src/graph/visit.ts'
const pythonFile = 'src/state/text/python-references.ts'

const takenOver = route('route a run taken over after any action goes on with exactly what has no action yet')
/** Guards of the blocks of a dialogue: the order of calls, stop on failure, and the arguments that results are part of. */
export const blockMutants: readonly Mutant[] = [
  {
    name: 'a sequential block stops on failure',
    file: calls,
    edits: [{ from: 'if (isStopped || answers[index]', to: 'if (answers[index]' }],
    why: 'a step acts on what a failed step before it did not do',
    caughtBy: [
      ...takenOver,
      ...blocks(
        'a sequential block that stops on failure does not run the rest: it has no action, and the model reads why',
      ),
    ],
  },
  {
    name: 'only a block that says so stops on failure',
    file: calls,
    edits: [
      {
        from: "result.block === 'sequential' && result.on_failure === 'stop'",
        to: "result.block === 'sequential'",
      },
    ],
    why: 'native calls, and runs that an earlier version began, lose calls',
    caughtBy: [
      ...takenOver,
      ...blocks(
        'a sequential block that stops on failure of native calls, and of an action of an earlier version, goes on',
      ),
    ],
  },
  {
    name: 'calls of one resource keep their order',
    file: calls,
    edits: [{ from: '(call.exclusive ?? call.index)', to: 'call.index' }],
    why: 'two calls use one sandbox or one page at once',
    caughtBy: [
      ...takenOver,
      ...blocks(
        'lanes keep the order of the calls that name one resource, beside all others, and wait for no other lane',
      ),
    ],
  },
  {
    name: 'the resource is in the planned call',
    file: 'src/nodes/planner/planner.node.ts',
    edits: [{ from: 'return exclusive === undefined ? call : { ...call, exclusive }', to: 'return call' }],
    why: 'no worker knows which calls have to wait for each other',
    caughtBy: blocks('lanes in the planner’s action are those of the tools that name a resource'),
  },
  {
    name: 'a lane goes on alone',
    file: 'src/graph/route.ts',
    edits: [{ from: '(own && [own.lane, orderedLane].includes(lane))', to: 'own !== undefined' }],
    why: 'calls of other lanes, which are under way, are made twice',
    caughtBy: [
      ...route('route in one process every action is sent for once, whatever order its siblings commit in'),
      ...blocks(
        'lanes keep the order of the calls that name one resource, beside all others, and wait for no other lane',
      ),
    ],
  },
  {
    name: 'arguments are resolved again at a take-over, and compared',
    file: visit,
    edits: [
      {
        from: 'if (planned.before && noted !== resolvedHash)',
        to: 'if (planned.before && noted === undefined)',
      },
    ],
    why: 'a call that was begun with one argument goes on with another',
    caughtBy: blocks('the arguments of a later step that a take-over resolves otherwise fail the run'),
  },
  {
    name: 'the hash of resolved arguments is in the action',
    file: visit,
    edits: [{ from: 'resolved_sha256 === null ? {} : { resolved_sha256 }', to: '{}' }],
    why: 'nothing says with which arguments a call ran',
    caughtBy: blocks(
      'the arguments of a later step have the results, of the expected type, and their hash is in the action; the plan stays as it was written',
    ),
  },
  {
    name: 'references stand for results only in a sequential block',
    file: 'src/graph/visit.ts',
    edits: [
      { from: 'stopsOnFailure(plan) ? listUsedSteps(tool, call) : []', to: 'listUsedSteps(tool, call)' },
    ],
    why: 'native calls whose text looks like a reference run with other arguments',
    caughtBy: blocks('the arguments of a later step are as they were written in any other block'),
  },
  {
    name: 'a step refers only to steps before it',
    file: 'src/graph/references.ts',
    edits: [{ from: 'step < 0 || step >= index', to: 'step < 0' }],
    why: 'a step waits for a result that cannot be there',
    caughtBy: references(
      'the references of a block can be in later steps of a sequential block, to steps before alone',
    ),
  },
  {
    name: 'results take at most 1 MB of arguments',
    file: 'src/graph/references.ts',
    edits: [
      {
        from: 'if (bytes <= maxResultBytes) return text',
        to: 'if (bytes <= maxResultBytes || true) return text',
      },
    ],
    why: 'a few references fill the memory of the process',
    caughtBy: references(
      'the arguments of a step are an error where results of over 1 MB come in, in one reference or in many',
    ),
  },
  {
    name: 'results are escaped for the literal that they are in',
    file: pythonFile,
    edits: [
      { from: 'return toLiteralText(findResult(Number(step)))', to: 'return findResult(Number(step))' },
    ],
    why: 'a result is run as a program',
    caughtBy: python('references in a program of a plain literal give way to the result, escaped for it'),
  },
  {
    name: 'an escape before a reference does not go on in the result',
    file: pythonFile,
    edits: [
      {
        from: "if (octal !== undefined) return `\\\\${octal.padStart(3, '0')}`",
        to: 'if (octal !== undefined) return token',
      },
    ],
    why: 'the beginning of a result is read as part of an escape',
    caughtBy: python('references in a program after an open escape do not go on with it'),
  },
]
