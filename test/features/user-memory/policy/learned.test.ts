import { describe, expect, test } from 'vitest'
import {
  isTaughtByMemory,
  type LearnedProfile,
  learnProfileFields,
  type TaughtValue,
  unlearnProfileFields,
} from '../../../../src/features/user-memory/policy/learned-profile.ts'

const emptyProfile: LearnedProfile = { profile: {}, learned: {} }
const from = (session_id: string) => ({
  session_id,
  run_id: `run-${session_id}`,
  at: '2026-01-01T00:00:00.000Z',
})
/** The profile after these sessions have taught these fields, one after the other. */
const taught = (
  lessons: readonly (readonly [session: string, fields: Record<string, string>])[],
): LearnedProfile =>
  lessons.reduce(
    (user, [session, fields]) => learnProfileFields(user, fields, from(session)) ?? user,
    emptyProfile,
  )
const without = (user: LearnedProfile, session: string): LearnedProfile =>
  unlearnProfileFields(user, ({ session_id }) => session_id === session) ?? user

describe('a learned field', () => {
  test('is deleted with its session, and gets back the value of an earlier session', () => {
    const user = taught([
      ['a', { name: 'Clara', location: 'Lyon' }],
      ['b', { location: 'Berlin' }],
      ['c', { location: 'Rome' }],
    ])
    expect(user.profile).toEqual({ name: 'Clara', location: 'Rome' })
    expect(without(user, 'b').profile).toEqual({ name: 'Clara', location: 'Rome' })
    expect(without(user, 'c').profile).toEqual({ name: 'Clara', location: 'Berlin' })
    expect(without(without(user, 'b'), 'c').profile).toEqual({ name: 'Clara', location: 'Lyon' })
    expect(['c', 'a', 'b'].reduce(without, user)).toEqual(emptyProfile)
  })

  test('stays while one of its sessions is left', () => {
    const user = taught([
      ['a', { name: 'Clara' }],
      ['b', { name: 'Clara' }],
    ])
    expect(without(user, 'b').profile).toEqual({ name: 'Clara' })
    expect(without(user, 'a').profile).toEqual({ name: 'Clara' })
    expect(without(without(user, 'a'), 'b')).toEqual(emptyProfile)
  })

  test('of one session is what it said last', () => {
    const user = taught([
      ['a', { location: 'Lyon' }],
      ['a', { location: 'Berlin' }],
    ])
    expect(without(user, 'a')).toEqual(emptyProfile)
  })

  test('that an admin has changed or removed stays so, and no lesson brings an older value back', () => {
    const user = taught([
      ['a', { location: 'Lyon', name: 'Clara' }],
      ['b', { location: 'Berlin', name: 'Clara Jensen' }],
    ])
    const edited: LearnedProfile = { ...user, profile: { location: 'Lyon' } }
    expect(without(edited, 'b')).toEqual({ profile: { location: 'Lyon' }, learned: {} })
    expect(without(without(edited, 'b'), 'a').profile).toEqual({ location: 'Lyon' })
    expect(learnProfileFields(edited, { location: 'Oslo' }, from('c'))).toBeNull()
    const again = learnProfileFields(edited, { name: 'Clara' }, from('c'))
    expect(again && without(again, 'c').profile).toEqual({ location: 'Lyon' })
  })

  test('of an earlier version, without other sessions, is deleted too', () => {
    const old: LearnedProfile = {
      profile: { name: 'Clara' },
      learned: { name: { value: 'Clara', ...from('a') } },
    }
    expect(without(old, 'a')).toEqual(emptyProfile)
    expect(unlearnProfileFields(old, () => false)).toBeNull()
  })

  test('notes twenty sessions at most', () => {
    const many = taught(
      Array.from({ length: 30 }, (_, at) => [`s${at}`, { location: `Town ${at}` }] as const),
    )
    expect(many.learned.location?.earlier).toHaveLength(19)
    expect(without(many, 's29').profile).toEqual({ location: 'Town 28' })
  })
})

describe('a field says what a memory says', () => {
  const lesson = (value: string, run_id = 'r1'): TaughtValue => ({ value, run_id, session_id: 's', at: '' })
  test.each([
    ['of the same run, with its value', 'I live in Lyon.', 'home', lesson('Lyon'), 'location', true],
    ['of another run, about the same', 'I live in Lyon.', 'home', lesson('Lyon', 'r2'), 'location', true],
    ['of another run, about something else', 'I love Lyon.', null, lesson('Lyon', 'r2'), 'location', false],
    [
      'of the same run and field',
      'The user lives in Paris.',
      'home',
      lesson('Paris, France'),
      'location',
      true,
    ],
    [
      'of the same run and field',
      'The user works as a nurse.',
      'work',
      lesson('nursing'),
      'occupation',
      true,
    ],
    ['of the same field alone', 'I live in Lyon.', 'home', lesson('Paris', 'r2'), 'location', false],
    ['of the same run, with another value', 'I live in Lyon.', 'home', lesson('Clara'), 'name', false],
    ['of a name without a telling word', 'My name is Will.', 'name', lesson('Will'), 'name', true],
    ['in Chinese', '我叫王小明', 'name', lesson('王小明'), 'name', true],
  ] as const)('%s', (_, content, subject, one, field, says) => {
    expect(isTaughtByMemory({ content, subject, run_ids: ['r1'] }, one, field)).toBe(says)
  })
})
