import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Node, parseSync } from 'oxc-parser'

/**
 * `npm run check`: no verdict of a test depends on time or chance. In test/ it refuses comparisons of what a clock gave, also
 * by way of variables and functions, draws that no seed repeats, and short limits of tests and of what they wait for. Prints file:line and a remedy.
 */
const clocks = /^(performance\.now|Date\.now|process\.(hrtime|hrtime\.bigint|cpuUsage|threadCpuUsage))$/
const draws = /^(Math\.random|(crypto\.)?(randomInt|randomBytes|randomFillSync|getRandomValues))$/
const comparing = /^to(Be(LessThan|GreaterThan)(OrEqual)?|BeCloseTo)$/
const clockRemedy =
  'count facts (calls, rows, bytes) in place of time, wait for one with until(), or ask waitedFor() of test/support/clock.ts whether a least time has passed; measure time in bench/'
const drawRemedy =
  'draw with fast-check or seededBytes() of test/support/random.ts; names and secrets are unique(prefix) or randomBytes(n) of at most 64'
const limitRemedy =
  'leave it to the limits of vitest.config.ts, which end only what hangs: a slow machine may need a minute for anything'
const leastLimitMs = 90_000
/** Each is a helper that is named for it. */
const helpers = ['clock', 'jumping-clock', 'random'].map((name) => `test/support/${name}.ts`)

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value
const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode)
const visit = (
  node: Node,
  look: (node: Node, parents: readonly Node[]) => void,
  parents: Node[] = [],
): void => {
  look(node, parents)
  for (const child of childrenOf(node)) visit(child, look, [...parents, node])
}
const nameOf = (node: Node): string => {
  if (node.type === 'Identifier') return node.name
  return node.type === 'MemberExpression' && !node.computed
    ? `${nameOf(node.object)}.${nameOf(node.property)}`
    : ''
}

/** Names that hold what a clock gave, each with the block in which it does. */
type Timed = { name: string; start: number; end: number }[]

/** Whether a value is computed from a clock; what is only an argument of some call is not. */
const isTimed = (node: Node, timed: Timed): boolean => {
  const any = (...nodes: readonly (Node | null)[]): boolean => nodes.some((one) => one && isTimed(one, timed))
  switch (node.type) {
    case 'Identifier':
      return timed.some(
        ({ name, start, end }) => name === node.name && start <= node.start && node.end <= end,
      )
    case 'CallExpression':
      return (
        clocks.test(nameOf(node.callee)) ||
        any(node.callee) ||
        (/^(Math\.|Number$)/.test(nameOf(node.callee)) && any(...node.arguments))
      )
    case 'ArrowFunctionExpression':
    case 'FunctionExpression':
    case 'FunctionDeclaration':
      return node.body?.type === 'BlockStatement'
        ? returnsOf(node.body).some((one) => any(one))
        : any(node.body)
    case 'BinaryExpression':
      return /^[-+*/%]$/.test(node.operator) && any(node.left, node.right)
    case 'ConditionalExpression':
      return any(node.consequent, node.alternate)
    case 'MemberExpression':
      return any(node.object)
    case 'AwaitExpression':
    case 'UnaryExpression':
    case 'SpreadElement':
      return any(node.argument)
    case 'ArrayExpression':
      return any(...node.elements)
    case 'ParenthesizedExpression':
    case 'TSAsExpression':
    case 'TSNonNullExpression':
      return any(node.expression)
    default:
      return false
  }
}

/** What a body returns, without the functions inside of it. */
const returnsOf = (node: Node): Node[] =>
  childrenOf(node).flatMap((child) => {
    if (/Function/.test(child.type)) return []
    return child.type === 'ReturnStatement' ? (child.argument ? [child.argument] : []) : returnsOf(child)
  })

const blockOf = (parents: readonly Node[]): Node | undefined =>
  parents.findLast(({ type }) => /^(BlockStatement|Program)$|Function/.test(type))

/** The names of one pass more: what holds a clock's value by those that are known. */
const timedNames = (program: Node, timed: Timed): Timed => {
  const found: Timed = []
  const add = (pattern: Node, parents: readonly Node[]): void => {
    const { start, end } = blockOf(parents) ?? program
    visit(pattern, (node) => {
      if (node.type === 'Identifier') found.push({ name: node.name, start, end })
    })
  }
  visit(program, (node, parents) => {
    if (node.type === 'VariableDeclarator' && node.init && isTimed(node.init, timed)) add(node.id, parents)
    if (node.type === 'FunctionDeclaration' && node.id && isTimed(node, timed)) add(node.id, parents)
    if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return
    const { object, property } = node.callee
    if (nameOf(property) === 'push' && node.arguments.some((one) => isTimed(one, timed)))
      if (object.type === 'Identifier') found.push({ name: object.name, start: 0, end: program.end })
  })
  return found
}

/** What `expect` was given, through `.not`, `.resolves` and the like. */
const expectedBy = (node: Node): readonly Node[] => {
  if (node.type === 'MemberExpression') return expectedBy(node.object)
  return node.type === 'CallExpression' && /^expect\b/.test(nameOf(node.callee)) ? node.arguments : []
}

const isComparison = (node: Node, timed: Timed): boolean => {
  if (node.type === 'BinaryExpression')
    return /^[<>]=?$/.test(node.operator) && [node.left, node.right].some((one) => isTimed(one, timed))
  if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return false
  if (!comparing.test(nameOf(node.callee.property))) return false
  return [...expectedBy(node.callee.object), ...node.arguments].some((one) => isTimed(one, timed))
}

/** Not of short names and secrets: they choose no path of a test. */
const isDraw = (node: Node): boolean => {
  if (node.type !== 'CallExpression' || !draws.test(nameOf(node.callee))) return false
  const [size] = node.arguments
  return !(/randomBytes$/.test(nameOf(node.callee)) && size?.type === 'Literal' && Number(size.value) <= 64)
}

/** Also the default of `vi.waitFor`, which is one second. */
const isShortLimit = (node: Node): boolean => {
  const isShort = (one: Node | undefined): boolean =>
    one?.type === 'Literal' && Number(one.value) < leastLimitMs
  if (node.type === 'Property') return nameOf(node.key) === 'timeout' && isShort(node.value)
  if (node.type !== 'CallExpression') return false
  const name = nameOf(node.callee)
  if (name === 'AbortSignal.timeout') return isShort(node.arguments[0])
  return /^vi\.wait(For|Until)$/.test(name) && node.arguments[1]?.type !== 'ObjectExpression'
}

const problemsOf = (path: string, text: string, imported: readonly string[]): string[] => {
  const { program } = parseSync(path, text)
  let timed: Timed = imported
    .filter((name) => new RegExp(`import [^;]*?\\b${name}\\b[^;]*? from`).test(text))
    .map((name) => ({ name, start: 0, end: program.end }))
  for (let known = -1; known !== timed.length; ) {
    known = timed.length
    const all = [...timed, ...timedNames(program, timed)]
    timed = [...new Map(all.map((one) => [`${one.name} ${one.start}`, one])).values()]
  }
  const problems: string[] = []
  visit(program, (node) => {
    const line = text.slice(0, node.start).split('\n').length
    if (isComparison(node, timed)) problems.push(`${path}:${line} compares what a clock gave: ${clockRemedy}`)
    if (isShortLimit(node)) problems.push(`${path}:${line} has a short limit: ${limitRemedy}`)
    if (isDraw(node)) problems.push(`${path}:${line} draws without a seed: ${drawRemedy}`)
  })
  return problems
}

const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .map((name) => join('test', name))
  .filter((path) => path.endsWith('.ts') && !helpers.includes(path))
  .map((path) => ({ path, text: readFileSync(path, 'utf8') }))
const isAbout = (text: string, ...more: readonly string[]): boolean =>
  new RegExp(
    [
      'Date\\.now',
      'performance',
      'hrtime',
      'cpuUsage',
      'random',
      'timeout:',
      'AbortSignal',
      'vi\\.wait',
      ...more,
    ].join('|'),
    'i',
  ).test(text)
// functions of helpers that give times, by their names
const timers = files.flatMap(({ path, text }) => {
  if (!isAbout(text)) return []
  const { program } = parseSync(path, text)
  return timedNames(program, timedNames(program, []))
    .map(({ name }) => name)
    .filter((name) => new RegExp(`^export (const|(async )?function) ${name}\\b`, 'm').test(text))
})
const problems = files.flatMap(({ path, text }) =>
  isAbout(text, ...timers) ? problemsOf(path, text, timers) : [],
)
for (const problem of problems) console.error(problem)
if (problems.length > 0) process.exitCode = 1
