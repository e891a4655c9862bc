import { expect, test } from 'vitest'
import { createEvidenceSearch } from '../../../../src/features/user-memory/policy/evidence.ts'

test.each([
  [
    'liefert erst',
    'Der Händler liefert erst am 14. Oktober nach Ulm. Danke.',
    'Der Händler liefert erst am 14. Oktober nach Ulm.',
  ],
  ['Meier kommt', 'Herr Dr. Meier kommt z. B. am 2. Mai. Gut.', 'Herr Dr. Meier kommt z. B. am 2. Mai.'],
  ['Ich bin', 'Ich bin 30. Mein Hund heißt Rex.', 'Ich bin 30.'],
  ['My daughter', 'My daughter is 12. Mary is her name.', 'My daughter is 12.'],
  ['My son', 'My son is 12. Maybe he will study.', 'My son is 12.'],
  ['My son', 'My son is 12. 3 Germans live here.', 'My son is 12.'],
  ['Es beginnt', 'Es beginnt am 14. 10. 2026. Gut.', 'Es beginnt am 14. 10. 2026.'],
  ['Es endet', 'Es endet am 2. Sept. Gut.', 'Es endet am 2. Sept.'],
  ['I live', 'I live at Elm St. Please keep it private.', 'I live at Elm St.'],
  ['Ich wohne', 'Ich wohne in St. Gallen. Danke.', 'Ich wohne in St. Gallen.'],
  ['I like tea', 'Is it? No. I like tea. Thanks.', 'I like tea.'],
  ['Le Guin', 'I read Ursula K. Le Guin. Often.', 'I read Ursula K. Le Guin.'],
])('the sentence that has "%s" is whole', (quote, text, sentence) => {
  expect(createEvidenceSearch([text])(quote)).toBe(sentence)
})
