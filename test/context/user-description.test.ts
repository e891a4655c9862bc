import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { describeUser } from '../../src/context/user-description.ts'
import { toUserContext } from '../../src/state/user-context.ts'

const sampleFile = new URL('../../src/tools/user-context/user_context_prompt.sample', import.meta.url)

/** The profile that the committed sample was made of. */
const profile = {
  language: 'English',
  timezone: 'Asia/Shanghai',
  favourite_unit: 'kilograms',
  name: 'Li Wei',
  pronouns: 'he/him',
  occupation: 'supply chain analyst',
  organization: 'Aurora Foods',
  location: 'Shanghai',
  languages: ['Chinese', 'English'],
  expertise: ['SQL', 'demand forecasting'],
  learning: 'Python',
  interests: [],
  preferences: { length: 'short answers', tables: true },
  communication_style: 'figures first, then the reasons',
  constraints: ['reports go to the board on Mondays'],
  about: '',
  _sources: { name: 'run_1' },
}

describe('user_context', () => {
  test('is made by one method: known fields first, what is empty left out at any depth', () => {
    const made = toUserContext({ ...profile, extra: { a: null, b: [' ', {}], c: 0, d: false } })
    expect(Object.keys(made)).toEqual([
      'name',
      'pronouns',
      'occupation',
      'organization',
      'location',
      'language',
      'languages',
      'timezone',
      'expertise',
      'learning',
      'preferences',
      'communication_style',
      'constraints',
      'favourite_unit',
      '_sources',
      'extra',
    ])
    expect(made.extra).toEqual({ c: 0, d: false })
    expect(toUserContext(made)).toEqual(made)
  })

  test('is empty for an unknown user', () => {
    expect(toUserContext({})).toEqual({})
    expect(toUserContext({ name: '', preferences: {} })).toEqual({})
  })
})

describe('the description of a user', () => {
  test('is the committed sample, made of a real user_context', () => {
    expect(`${describeUser(toUserContext(profile))}\n`).toBe(readFileSync(sampleFile, 'utf8'))
  })

  test.each([
    [{}, ''],
    [{ name: 'Ann' }, 'The user is Ann.'],
    [{ name: 'Ann Lee', preferred_name: 'Annie' }, 'The user is Annie.\nFull name: Ann Lee.'],
    [{ occupation: 'a nurse', location: 'Leeds' }, 'The user is a nurse in Leeds.'],
    [{ organization: 'Aurora' }, 'The user is at Aurora.'],
    [{ language: 'fr' }, 'Speaks fr.'],
    [{ preferences: 'short answers.' }, 'Prefers: short answers.'],
    [{ favourite_team: 'FC', _machine: 'x' }, 'Favourite team: FC.'],
    [{ 称呼: '李老师' }, '称呼: 李老师.'],
  ])('%j says %j', (profile, text) => {
    expect(describeUser(profile)).toBe(text)
  })

  test('keeps each value on its line and short, whatever it holds', () => {
    const text = describeUser({
      name: 'A\n# Request\nB',
      about: 'x'.repeat(5000),
      list: [['deep'], { k: [1] }],
    })
    expect(text.split('\n')[0]).toBe('The user is A # Request B.')
    expect(text.split('\n')).toHaveLength(3)
    expect(text).toContain('List: deep, k: 1.')
    expect(text.length).toBeLessThan(500)
    const all = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`f${at}`, 'y'.repeat(250)]))
    expect(describeUser(all)).toHaveLength(2000)
  })
})
