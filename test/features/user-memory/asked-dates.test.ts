import { expect, test } from 'vitest'
import { findAskedTime } from '../../../src/features/user-memory/policy/asked-dates.ts'

/** A Thursday. */
const now = new Date('2026-11-26T15:00:00Z')

test.each([
  ['Where were we yesterday?', '2026-11-25', '2026-11-26', true],
  ['What did we say about the hotel last week?', '2026-11-16', '2026-11-23', false],
  ['Was haben wir letzte Woche besprochen?', '2026-11-16', '2026-11-23', true],
  ['上周我们聊了什么', '2026-11-16', '2026-11-23', true],
  ['Which trip did I plan 3 days ago?', '2026-11-23', '2026-11-24', false],
  ['The numbers of 2026-10-05', '2026-10-05', '2026-10-06', false],
  ['2026年10月5日的报告', '2026-10-05', '2026-10-06', false],
  ['Which book did you suggest in March?', '2026-03-01', '2026-04-01', false],
  ['Which book did you suggest in December?', '2025-12-01', '2026-01-01', false],
  ['What did we decide last year about the roof?', '2025-01-01', '2026-01-01', false],
  ['What did we talk about on October 5?', '2026-10-05', '2026-10-06', true],
  ['What did we discuss on 27 November about the roof?', '2025-11-27', '2025-11-28', false],
  ['Was haben wir am 5. Oktober besprochen?', '2026-10-05', '2026-10-06', true],
  ['Was stand am 05.10.2026 im Bericht?', '2026-10-05', '2026-10-06', false],
  ['10月5日我们聊了什么', '2026-10-05', '2026-10-06', true],
  ['What did we talk about on Thursday?', '2026-11-19', '2026-11-20', true],
  ['Was haben wir letzten Montag über das Hotel gesagt?', '2026-11-23', '2026-11-24', false],
  ['上周三我们聊了什么', '2026-11-18', '2026-11-19', true],
  ['上周meeting的结论', '2026-11-16', '2026-11-23', false],
  ['What did we say about the roof a week ago?', '2026-11-16', '2026-11-23', false],
  ['Was haben wir vor zwei Monaten besprochen?', '2026-09-01', '2026-10-01', true],
  ['三个月前屋顶的事', '2026-08-01', '2026-09-01', false],
  ['大前天我们聊了什么', '2026-11-23', '2026-11-24', true],
  ['Was haben wir in der letzten Woche besprochen?', '2026-11-16', '2026-11-23', true],
  ['What did we say in 2025 about taxes?', '2025-01-01', '2026-01-01', false],
])('"%s" is about %s to %s', (question, from, until, isLatest) => {
  const time = findAskedTime(question, now)
  expect([time?.from.toISOString().slice(0, 10), time?.until.toISOString().slice(0, 10)]).toEqual([
    from,
    until,
  ])
  expect(time?.isLatest).toBe(isLatest)
})

test.each([
  'Where did we leave it last time?',
  'Let us continue where we left off',
  '我们上次说到哪里了？',
  'Wo sind wir stehen geblieben?',
])('"%s" is about the latest talk', (question) =>
  expect(findAskedTime(question, now)).toMatchObject({ isLatest: true, from: new Date(0) }),
)

test.each([
  'What did we discuss about the hotel?',
  'How many zebras are there?',
  'I may march on',
  'Due on 2027-01-05',
  'What did we say on 2026-02-30?',
  'Our meeting is on Monday, book a room',
  'Book the hotel for December 24',
  'What happens on the last day of the trip?',
  '',
])('"%s" names no time', (question) => expect(findAskedTime(question, now)).toBeNull())
