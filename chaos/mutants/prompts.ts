import { type Mutant, testsOf } from './mutant.ts'

const marked = testsOf('test/context/marked-state.test.ts')(
  'every text of the state that is in a prompt is in a fence of its origin, or it is the user’s own',
)
const injected = testsOf('test/context/injections.test.ts')(
  '300 injections by every path into a prompt: none is outside its fence, and each was in a prompt',
)
const beside = testsOf('test/context/injections.test.ts')(
  'no injection is outside its fence in what learning sends, nor in what a model of images is sent',
)
const both = [...marked, ...injected]
const why = 'words of a file, a page or a model that read them give orders in a prompt'

/** A mutant without one fence: the text is in the prompt as it came. */
const drop = (
  name: string,
  file: string,
  from: string,
  to: string,
  caughtBy: Mutant['caughtBy'] = both,
): Mutant => ({ name: `fence of ${name}`, file, edits: [{ from, to }], why, caughtBy })

const background = 'src/context/background.ts'
const context = 'src/context/context.ts'
const history = 'src/context/history.ts'
const dialect = 'src/nodes/planner/dialects/tools.ts'
const lessons = 'src/features/user-memory/policy/lessons.ts'
const reflection = 'src/nodes/reflection/reflection.node.ts'

/** Fences around untrusted text in prompts, one dropped each. */
export const promptMutants: readonly Mutant[] = [
  drop(
    'the profile',
    background,
    "fence(describeUser(state.user_context), toLabel('profile'))",
    'describeUser(state.user_context) as never',
  ),
  drop(
    'files',
    background,
    "fence(describeFiles(state, maxTokens), toLabel('file'), maxTokens)",
    'describeFiles(state, maxTokens) as never',
  ),
  drop('memories', background, "fence(others, toLabel('memory'))", 'others as never'),
  drop(
    'settings that a model proposed',
    context,
    "    ? toLabel('user')\n    : derivedLabel",
    "    ? toLabel('user')\n    : toLabel('user')",
  ),
  drop(
    'the task',
    context,
    "fence(current ? renderCurrentTask(current) : '', derivedLabel, maxTokens / 2)",
    "(current ? renderCurrentTask(current) : '') as never",
  ),
  drop(
    'the plan',
    context,
    "fence(lines.join('\\n'), derivedLabel, maxTokens - estimateTokens(task))",
    "lines.join('\\n') as never",
  ),
  drop(
    'the goal',
    context,
    "fence(isRequest ? '' : goal.trim(), derivedLabel, Math.floor(maxTokens))",
    "(isRequest ? '' : goal.trim()) as never",
  ),
  drop(
    'the summary of earlier turns',
    history,
    "fence(latest?.text ?? '', derivedLabel)",
    "(latest?.text ?? '') as never",
  ),
  drop('earlier answers', history, 'fence(entry.text.trim(), entry.label)', 'entry.text.trim() as never'),
  drop(
    'results and calls written as text',
    'src/context/result-text.ts',
    'label.trusted\n    ? joinTexts([fence(called, derivedLabel), userWords(text)]',
    'true\n    ? joinTexts([called as never, userWords(text)]',
  ),
  drop(
    'what a planner says beside calls',
    dialect,
    'fence(plan.preparation, derivedLabel)',
    'plan.preparation as never',
  ),
  drop(
    "reflection's gap",
    dialect,
    "fence([result.knowledge_gap, ...queries].join('\\n'), derivedLabel)",
    "[result.knowledge_gap, ...queries].join('\\n') as never",
  ),
  drop(
    'refusals',
    dialect,
    'fence(cutText(found.error, maxError), derivedLabel)',
    '(fault.error as never)',
    injected,
  ),
  drop(
    'corrections',
    dialect,
    "fence(errors.map((error) => `- ${error}`).join('\\n'), derivedLabel)",
    "errors.map((error) => `- ${error}`).join('\\n') as never",
    injected,
  ),
  drop('refused replies', dialect, 'fence(text.trim(), derivedLabel)', 'text.trim() as never', injected),
  drop(
    'lines of earlier results',
    reflection,
    "fence(lines.latest.join('\\n'), derivedLabel)",
    "lines.latest.join('\\n') as never",
    injected,
  ),
  drop('answers in the talk', reflection, 'fence(text, derivedLabel)', '(text as never)', marked),
  drop(
    'the draft',
    'src/tools/output/output-prompt.ts',
    "fence(draft?.trim() ?? '', derivedLabel, Math.floor(budget * draftShare))",
    "(draft?.trim() ?? '') as never",
  ),
  drop(
    'what a schema expects',
    'src/tools/output/structured-output.ts',
    'if (!isRequested)',
    'if (false && !isRequested)',
  ),
  drop(
    'results that claim to be the user’s words',
    'src/graph/visit.ts',
    "claimed === 'user' && declared !== 'user' ? 'tool' : claimed",
    'claimed',
    injected,
  ),
  drop(
    'the session that is learned from',
    lessons,
    'fence(summary, derivedLabel)',
    'summary as never',
    beside,
  ),
  drop(
    'the answer that is learned from',
    lessons,
    "fence(cutText(answer ?? '', maxTextChars), derivedLabel)",
    "cutText(answer ?? '', maxTextChars) as never",
    beside,
  ),
  drop('the memories that learning knows', lessons, "toLabel('memory')", "toLabel('user')", beside),
  drop(
    'a proposed statement',
    lessons,
    'createDataFence({ prompts: [...said] })(proposed, derivedLabel)',
    'proposed as never',
    beside,
  ),
  {
    name: 'marks inside a fence',
    file: 'src/state/provenance.ts',
    edits: [{ after: 'fitTokens(whole, maxTokens)', from: 'withoutMarks(text)', to: 'text' }],
    why: 'a text ends its own fence',
    caughtBy: injected,
  },
]
