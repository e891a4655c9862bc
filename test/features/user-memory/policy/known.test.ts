import { expect, test } from 'vitest'
import { listProfileFields } from '../../../../src/features/user-memory/policy/learned-profile.ts'
import { userKnowledgeSchema } from '../../../../src/state/memory-view.ts'

const from = (session_id: string, day: number) => ({
  session_id,
  run_id: `run-${session_id}`,
  at: `2026-01-0${day}T00:00:00.000Z`,
})
const shown = (session_id: string, day: number) => {
  const { at, ...source } = from(session_id, day)
  return { ...source, learned_at: at }
}

test('every field is shown with its origin, also when an admin has changed or removed it since', () => {
  const learned = {
    location: { value: 'Berlin', ...from('b', 2), earlier: [{ value: 'Lyon', ...from('a', 1) }] },
    name: { value: 'Clara', ...from('a', 1) },
    timezone: { value: 'Europe/Paris', ...from('a', 1) },
  }
  const profile = { name: 'Dr Jensen', location: 'Berlin', tags: ['gold'] }
  const admins = { origin: 'admin', session_id: null, run_id: null, learned_at: null }
  const fields = listProfileFields({ profile, learned })
  expect(fields).toEqual([
    {
      ...{ field: 'location', value: 'Berlin', origin: 'learned' },
      ...shown('b', 2),
      earlier: [{ value: 'Lyon', ...shown('a', 1) }],
    },
    { field: 'name', value: 'Dr Jensen', ...admins, earlier: [{ value: 'Clara', ...shown('a', 1) }] },
    { field: 'tags', value: ['gold'], ...admins, earlier: [] },
    { field: 'timezone', value: null, ...admins, earlier: [{ value: 'Europe/Paris', ...shown('a', 1) }] },
  ])
  expect(userKnowledgeSchema.parse({ profile: fields, summaries: [] }).profile).toEqual(fields)
})
