import { describe, expect, test } from 'vitest'
import { createBinding } from '../../../src/infra/database/named-parameters.ts'
import { MasonError } from '../../../src/state/errors.ts'
import type { SqlValues } from '../../../src/state/ports/sql.ts'

const bind = createBinding()
const values = { run_id: 'run_1', epoch: 3 }

const failureOf = (text: string, given: SqlValues): MasonError => {
  try {
    bind(text, given)
  } catch (error) {
    if (error instanceof MasonError) return error
    throw error
  }
  throw new Error(`bound: ${text}`)
}

describe('a statement with named values', () => {
  test('has each name numbered in the order of the text, however often it stands there', () => {
    expect(bind('UPDATE runs SET epoch = $epoch WHERE run_id=$run_id AND epoch<$epoch', values)).toEqual({
      text: 'UPDATE runs SET epoch = $1 WHERE run_id=$2 AND epoch<$1',
      values: [3, 'run_1'],
    })
  })

  test('tells names apart of which one begins with the other', () => {
    expect(bind('SELECT $a, $ab, $a_b, $a', { a_b: 3, ab: 2, a: 1 })).toEqual({
      text: 'SELECT $1, $2, $3, $1',
      values: [1, 2, 3],
    })
  })

  test('has as many as it needs', () => {
    const names = Array.from({ length: 31 }, (_, at) => `n${at}`)
    const bound = bind(
      `SELECT ${names.map((name) => `$${name}`).join(', ')}`,
      Object.fromEntries(names.toReversed().map((name) => [name, name])),
    )
    expect(bound.values).toEqual(names)
    expect(bound.text).toMatch(/ \$30, \$31$/)
  })

  test.each([
    ['a cast', 'SELECT $run_id::text, $epoch::int8', 'SELECT $1::text, $2::int8'],
    ['an array', "SELECT ARRAY[$run_id]||'{}'::text[], $epoch", "SELECT ARRAY[$1]||'{}'::text[], $2"],
    [
      'operators of JSON',
      `SELECT j->$run_id, j#>>'{$a}', j@?'$.b', j @@ '$.c == 1', j?$run_id, $epoch`,
      `SELECT j->$1, j#>>'{$a}', j@?'$.b', j @@ '$.c == 1', j?$1, $2`,
    ],
    ['strings', `SELECT '$a''$b', $run_id, '--', $epoch`, `SELECT '$a''$b', $1, '--', $2`],
    [
      'a string that ends in a backslash',
      `SELECT '\\', $run_id, ' $a', $epoch`,
      `SELECT '\\', $1, ' $a', $2`,
    ],
    [
      'strings with escapes',
      `SELECT E'\\'$a\\\\', $run_id, e'''$b', $epoch`,
      `SELECT E'\\'$a\\\\', $1, e'''$b', $2`,
    ],
    ['quoted names', `SELECT $run_id AS "$a""$b", $epoch`, `SELECT $1 AS "$a""$b", $2`],
    ['words with dollars', 'SELECT a$b, é$c, $run_id, t1$d, $epoch', 'SELECT a$b, é$c, $1, t1$d, $2'],
    [
      'a comment to the end of the line',
      "SELECT $run_id -- $a isn't\n, $epoch -- $b",
      "SELECT $1 -- $a isn't\n, $2 -- $b",
    ],
    [
      'comments within comments',
      "SELECT /* $a /* it's $b /**/ */ $c */ $run_id, /***/ $epoch /* '*/",
      "SELECT /* $a /* it's $b /**/ */ $c */ $1, /***/ $2 /* '*/",
    ],
    [
      'dollar quotes',
      'SELECT $$ $a $1 $$, $q$ $b $$ $x$ $q$, $run_id, $Q_1$$c$q$$Q_1$, $epoch',
      'SELECT $$ $a $1 $$, $q$ $b $$ $x$ $q$, $1, $Q_1$$c$q$$Q_1$, $2',
    ],
    ['a minus and a division', 'SELECT 4-$epoch/2*$epoch, $run_id', 'SELECT 4-$1/2*$1, $2'],
  ])('leaves %s alone', (_, text, numbered) => {
    expect(bind(text, values).text).toBe(numbered)
  })

  test('takes null, false, 0 and the empty text as values, and bytes and dates as they are', () => {
    const [bytes, at] = [Buffer.from('x'), new Date(0)]
    const bound = bind('SELECT $a, $b, $c, $d, $e, $f', { a: null, b: false, c: 0, d: '', e: bytes, f: at })
    expect(bound.values).toEqual([null, false, 0, '', bytes, at])
    expect(bound.values[4]).toBe(bytes)
  })

  test('has U+FFFD in place of NUL, as values of a list have', () => {
    expect(bind('SELECT $a', { a: 'x\0y' }).values).toEqual(['x\ufffdy'])
    expect(bind('SELECT $1', ['x\0y']).values).toEqual(['x\ufffdy'])
  })

  test('is compiled the same the second time, with the values of that time', () => {
    bind('SELECT $run_id, $epoch', values)
    expect(bind('SELECT $run_id, $epoch', { epoch: 4, run_id: 'run_2' })).toEqual({
      text: 'SELECT $1, $2',
      values: ['run_2', 4],
    })
  })

  test('is compiled rightly where more texts came than are kept', () => {
    for (let at = 0; at < 1500; at++)
      expect(bind(`SELECT ${at}, $a`, { a: at })).toEqual({ text: `SELECT ${at}, $1`, values: [at] })
  })
})

describe('an error of names', () => {
  test.each([
    ['without a value', { run_id: 'run_1' }, 'the statement has no value for $epoch', 'pass epoch'],
    [
      'with undefined',
      { run_id: 'run_1', epoch: undefined as never },
      'the statement has no value for $epoch',
      'pass epoch, or null',
    ],
    [
      'of a value that is not named',
      { ...values, user: 1 },
      'the statement does not use the value user',
      'write $user in it',
    ],
  ])('says the name, the statement and what to do: a name %s', (_, given, problem, remedy) => {
    for (const _time of ['first', 'second']) {
      const error = failureOf('SELECT $run_id,\n  $epoch', given)
      expect(error.message).toContain(problem)
      expect(error.message).toContain('SELECT $run_id, $epoch')
      expect(error.remedy).toContain(remedy)
      expect(error.code).toBe('internal')
    }
  })

  test('says that numbers and names are not mixed', () => {
    expect(failureOf('SELECT $run_id, $2', { run_id: 'run_1' }).message).toContain('$2 is in a statement')
  })

  test('also comes where the statement has no names at all', () => {
    expect(failureOf('SELECT 1', { a: 1 }).message).toContain('the statement does not use the value a')
    expect(bind('SELECT 1', {})).toEqual({ text: 'SELECT 1', values: [] })
  })
})

test('values of a list leave the text as it is, with all that looks like a name', () => {
  const text = 'SELECT $1::text, $$ $2 $$, $q$ $x $q$'
  expect(bind(text, ['a'])).toEqual({ text, values: ['a'] })
  expect(bind('SELECT $name')).toEqual({ text: 'SELECT $name', values: [] })
})
