import type { HttpInput, Input, PlayedReply, RunInput } from '../input.ts'

/** Patterns and statements that never end, over lines that feed them. Each call has a result or a named limit. */
export const patterns = (): Input[] => [...searches(), ...statements(), ...queries()]

const words = (text: string): string[] => text.split(' ')
const nested = words(
  '(a+)+$ (a*)*b (a|a)*$ (a|aa)+$ (.*)*x ^(([a-z])+.)+[A-Z]([a-z])+$ (x+x+)+y (.*a){50} (a?){1000}a{1000} ((a{1,100}){1,100}){1,100}',
)
const wide = words(
  String.raw`[^x]*x .*.*.*.*.*= \pL+\pN (?i)ſ+ \b\w+\b.*\b\w+\b a.{0,1000}b (?:(?:(?:a.*)*)*)* (a.*b.*c.*d.*){3} [\s\S]*\z (?s).*`,
)
const long = [
  `(${'a|'.repeat(400)}b)*`,
  `${'a?'.repeat(450)}x`,
  `${'('.repeat(480)}a${')'.repeat(480)}`,
  `[${'a-z'.repeat(300)}]+`,
  `${'.*'.repeat(480)}$`,
  `(?i)${'é'.repeat(900)}`,
]
const refused = words(
  String.raw`(?=a) (?<!a)b (a)\1 (?>a) ( [ * a{1001} \ (?P<n>a)(?P<n>b) \x{110000} a** [[:foo:]] (?z)`,
)

const lines: Record<string, string> = {
  'as.txt': `${'a'.repeat(1_000_000)}!`,
  'words.txt': `${'word '.repeat(20)}\n`.repeat(20_000),
  'odd.txt': `${'ſ\u0130é\u0301😀'.repeat(60_000)}\n${'x'.repeat(200_000)}y`,
}

/** A search may take 1.5 s of processor time, a statement 30 s: on a busy machine that is much longer by the clock. */
const callMs = { search_file_content: 8000, query_table: 60_000 }
/** The reader's start, and a machine that does other things. */
const slackMs = 45_000
const perRun = 6

type Call = { name: string; args: { [name: string]: string } }

/** Runs whose planner makes these calls, one after another; each is answered, or its action names the limit. */
const inRuns = (
  title: string,
  tool: keyof typeof callMs,
  calls: readonly Call[],
  files: Record<string, string>,
): RunInput[] =>
  Array.from({ length: Math.ceil(calls.length / perRun) }, (_, at) => {
    const some = calls.slice(at * perRun, (at + 1) * perRun)
    const planner: PlayedReply[] = [
      { tool_calls: some.map(({ args }) => ({ name: tool, arguments: args })) },
      { text: 'Done.' },
    ]
    return {
      kind: 'run',
      name: `${title} ${at}`,
      turns: [
        {
          prompt: 'Search.',
          limits: { timeout_ms: some.length * callMs[tool] + slackMs },
          files: Object.entries(files).map(([name, text]) => ({
            name,
            type: 'text/plain',
            content_base64: Buffer.from(text).toString('base64'),
          })),
        },
      ],
      play: { planner, reflection: [{ text: '{"is_sufficient":true}' }] },
      withinMs: some.length * callMs[tool] + 2 * slackMs,
      parts: some.map(({ name }, nr) => ({
        name,
        holds: ({ run, state }) => {
          if (run.status !== 'completed') return `the run is ${run.status}: ${JSON.stringify(run.error)}`
          const action = state?.action_history
            .flat()
            .find(({ result }) => (result.call as { index?: number } | undefined)?.index === nr)
          if (!action) return `has no action; its run ended as ${run.finish_reason}`
          return /root:x:0|fetch failed/.test(JSON.stringify(action.result)) ? 'shows what it may not' : null
        },
      })),
    }
  })

const searches = (): RunInput[] =>
  inRuns(
    'patterns',
    'search_file_content',
    Object.keys(lines).flatMap((file_path) =>
      [...nested, ...wide, ...long, ...refused].map((pattern) => ({
        name: `the pattern ${pattern.slice(0, 40)} over ${file_path}`,
        args: { file_path, pattern },
      })),
    ),
    lines,
  )

const sql = [
  ...`ATTACH '/etc/passwd' AS p
SELECT load_extension('/tmp/x')
SELECT readfile('/etc/passwd')
SELECT writefile('/tmp/x', 'y')
PRAGMA database_list
SELECT * FROM sqlite_master
SELECT 1; DROP TABLE t
DELETE FROM t
INSERT INTO t VALUES ('x')
CREATE TABLE x (a)
VACUUM INTO "/tmp/x"
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n
SELECT zeroblob(2000000000)
SELECT length(randomblob(1000000000))
SELECT printf('%.*c', 2000000000, 'x')
SELECT replace(hex(zeroblob(10000000)), '00', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')
SELECT group_concat(a.w) FROM t a, t b, t c
SELECT count(*) FROM t a, t b, t c, t d
SELECT json_extract('[[[', '$')
SELECT * FROM t WHERE w IN (SELECT w FROM t WHERE w IN (SELECT w FROM t))
SELECT abs(-9223372036854775808)
SELECT strftime('%Y', 99999999999999)
EXPLAIN SELECT 1
SELECT * FROM pragma_function_list
SELECT * FROM fsdir('/etc')
SELECT * FROM t ORDER BY randomblob(1000000) LIMIT 1
SELECT sqlite_version(), sqlite_source_id()
BEGIN; SELECT 1`.split('\n'),
  `SELECT w LIKE '${'%a'.repeat(900)}' FROM t`,
  `SELECT w GLOB '${'*a'.repeat(900)}' FROM t`,
  `SELECT ${'('.repeat(2000)}1${')'.repeat(2000)}`,
  `SELECT ${'1+'.repeat(5000)}1`,
  `SELECT ${Array.from({ length: 3000 }, (_, n) => n).join()}`,
  `SELECT 1 ${'UNION ALL SELECT 1 '.repeat(600)}`,
  `SELECT json('${'['.repeat(5000)}${']'.repeat(5000)}')`,
  'SELECT "\u0000"',
]

const statements = (): RunInput[] =>
  inRuns(
    'statements',
    'query_table',
    sql.map((statement) => ({ name: `the statement ${statement.slice(0, 60)}`, args: { sql: statement } })),
    { 't.csv': `w\n${'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n'.repeat(2000)}` },
  )

/** Words that people search memories for. */
const queries = (): HttpInput[] =>
  [
    ...nested,
    ...wide,
    '%'.repeat(500),
    "' OR 1=1 --",
    ':* & | !',
    '\\',
    'a & & b',
    '"',
    'x'.repeat(4000),
    'x '.repeat(2000),
    '\u0000',
    '\ud800',
  ].map((query) => ({
    kind: 'http',
    name: `memories that match ${query.slice(0, 30)}`,
    as: 'mallory',
    method: 'GET',
    path: `/v1/memories?user_id=u1&query=${encodeURIComponent(query.toWellFormed())}`,
    status: 'handled',
  }))
