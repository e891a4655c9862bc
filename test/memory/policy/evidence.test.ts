import { expect, test } from 'vitest'
import { createEvidenceSearch } from '../../../src/features/user-memory/policy/evidence.ts'

test.each([
  [
    'liefert erst',
    'Der Händler liefert erst am 14. Oktober nach Ulm. Danke.',
    'Der Händler liefert erst am 14. Oktober nach Ulm.',
  ],
  ['Meier kommt', 'Herr Dr. Meier kommt z. B. am 2. Mai. Gut.', 'Herr Dr. Meier kommt z. B. am 2. Mai.'],
  ['Ich bin', 'Ich bin 30. Mein Hund heißt Rex.', 'Ich bin 30.'],
  ['I like tea', 'Is it? No. I like tea. Thanks.', 'I like tea.'],
  ['Le Guin', 'I read Ursula K. Le Guin. Often.', 'I read Ursula K. Le Guin.'],
])('the sentence that has "%s" is whole', (quote, text, sentence) => {
  expect(createEvidenceSearch([text])(quote)).toBe(sentence)
})
