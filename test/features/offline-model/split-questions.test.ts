import { expect, test } from 'vitest'
import { splitQuestions } from '../../../src/features/offline-model/questions.ts'

test('two questions behind one opening stay two, and the later knows the earlier', () => {
  const before = 'For the North, who sold pens'
  expect(splitQuestions('For the North, who sold pens and what is the total revenue?')).toEqual([
    { question: before, before: '' },
    { question: 'what is the total revenue?', before },
  ])
})

test('a question knows the one before it, however the text between them was cut', () => {
  const before = 'Excluding returns, how many orders did Ann place'
  const file = 'Here is the file with all of the orders of the last year.'
  expect(
    splitQuestions(
      `${file}\nExcluding returns; how many orders did Ann place and what is the total revenue?`,
    ),
  ).toEqual([
    { question: before, before: '' },
    { question: 'what is the total revenue?', before },
  ])
})

test('each part of a long sentence is decided by itself', () => {
  expect(splitQuestions('x, tell x, '.repeat(1000))).toHaveLength(8)
})

test('a semicolon ends no sentence', () => {
  const question = 'Excluding returns, How many orders are there?'
  expect(splitQuestions('Excluding returns; How many orders are there?')).toEqual([{ question, before: '' }])
})
