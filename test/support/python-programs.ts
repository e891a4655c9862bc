import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'

/** Random programs in Python that refer to results, and what the real Python says of them. */

const piece = fc.constantFrom(
  ...[
    '{results[0]}',
    '{results[1]}',
    '{results[0]}',
    '{results[0]}{results[1]}',
    'a',
    '1',
    '7',
    ' ',
    '#',
    'x = "',
  ],
  ...[
    '\\',
    '\\\\',
    '\\n',
    '\\1',
    '\\12',
    '\\x41',
    '\\x4',
    '\\u00e9',
    '\\N{BULLET}',
    '\\N',
    "\\'",
    '\\"',
    '\\{',
  ],
  ...[
    '{',
    '}',
    '{{',
    '}}',
    '{x}',
    '{x!r:>{w}}',
    '"',
    "'",
    '"""',
    "'''",
    '\\\n',
    '\n',
    '\r\n',
    'é',
    '😀',
    '„',
    '\t',
  ],
)
const prefix = fc.constantFrom('', '', '', '', 'u', 'U', 'r', 'R', 'b', 'Rb', 'bR', 'f', 'f', 'F', 'rf', 'fR')
const quote = fc.constantFrom('"', "'", '"""', "'''")
const literal = fc
  .tuple(prefix, quote, fc.array(piece, { maxLength: 6 }))
  .map(([before, mark, body]) => before + mark + body.join('') + mark)
/** Of what is likely to be valid: nothing that ends it. */
const calmLiteral = fc.tuple(prefix, quote, fc.array(piece, { maxLength: 6 })).map(([before, mark, body]) => {
  const calm = body.filter((one) => !/^["'\n\r]|^\\$|^\\x4$|^\\N$|^[{}]$|"$/.test(one)).join('')
  return before + mark + (/f/i.test(before) ? calm.replaceAll('\\', '') : calm) + mark
})
const nested = fc
  .tuple(
    fc.constantFrom('f', 'F', 'rf'),
    fc.constantFrom("'{results[0]}'", '"{results[1]}"', "'#'", '"}"', 'x', 'r"{results[0]}"', "f'{x}'"),
  )
  .map(([before, inner]) =>
    inner.includes('"') ? `${before}'a{${inner}:>{w}}b'` : `${before}"a{${inner}!r}b"`,
  )
const expression = fc.oneof(
  { weight: 5, arbitrary: calmLiteral },
  { weight: 2, arbitrary: literal },
  { weight: 2, arbitrary: nested },
  fc.constantFrom(
    'results[0]',
    'x',
    '{"a": 1}',
    '{results[0]}',
    '1if x else 2',
    '0xfor"a"',
    '(lambda: "{results[0]}")',
    'x # {results[1]} "',
  ),
)
const statement = fc.oneof(
  fc
    .tuple(
      fc.constantFrom('', 'x = ', 'print(', 'return_ = '),
      fc.array(expression, { minLength: 1, maxLength: 3 }),
      fc.constantFrom(' ', ' + ', ', '),
    )
    .map(([before, parts, joint]) => `${before}${parts.join(joint)}${before.endsWith('(') ? ')' : ''}`),
  fc.constantFrom(
    ...[
      'import os; y = 1',
      'if x:\n  "{results[0]}"',
      'def f(a):\n\treturn a',
      '# "{results[0]}\'',
      'x = [\n"{results[0]}",\n\'b\' \\\n "c"\n]',
    ],
    ...['from __future__ import annotations', 'from __future__ import (\n annotations,\n)  # "', ''],
  ),
)
const program = fc
  .tuple(
    fc.array(statement, { minLength: 1, maxLength: 4 }),
    fc.constantFrom('\n', '\n', '\r\n', '; '),
    fc.constantFrom('', '\n', '"""doc"""\n'),
  )
  .map(([statements, end, before]) => before + statements.join(end))

/** What a hostile result may have: what ends literals, goes on with escapes, or is code. */
const hostile = fc.oneof(
  fc.constantFrom(
    ...[
      '',
      '"',
      "'",
      '"""',
      "'''",
      '\\',
      '\\\\',
      '\n',
      '\r',
      '\r\n',
      '\0',
      '{results[1]}',
      '{results[0]}',
      '1',
      '7f',
      'x',
      '{',
      '}',
    ],
    ...[
      '"; import os; os.system("true"); "',
      "'''\nimport os\n'''",
      '\\"',
      "\\'",
      '\\\n"',
      '\\N{BULLET}',
      '{BULLET}',
      '\u0085',
      '\u2028',
      '\x7f',
      '😀',
    ],
    ...[
      '\ud800',
      '#',
      '" + __import__("os").name + "',
      "{__import__('os').name}",
      '%s',
      '</execute_python></microsandbox_server>',
    ],
  ),
  fc
    .array(fc.constantFrom('"', "'", '\\', '\n', '\r', 'a', '0', '{', '}', '#', '\0'), { maxLength: 8 })
    .map((parts) => parts.join('')),
)

/** A program and what its results are. */
export type PythonCase = { code: string; texts: [string, string] }

/** So many random cases of a seed. */
export const samplePrograms = (count: number, seed: number): PythonCase[] =>
  fc.sample(fc.record({ code: program, texts: fc.tuple(hostile, hostile) }), { numRuns: count, seed })

/** Whether the machine has Python. */
export const hasPython = (): boolean => spawnSync('python3', ['--version']).status === 0

/** What `python-oracle.py` says of each case. */
export const askPython = (cases: readonly object[]): unknown[] => {
  const oracle = fileURLToPath(new URL('./python-oracle.py', import.meta.url))
  const { stdout, stderr, status } = spawnSync('python3', [oracle], {
    input: cases.map((one) => `${JSON.stringify(one)}\n`).join(''),
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
  })
  if (status !== 0) throw new Error(stderr)
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}
