import { expect, test } from 'vitest'
import { readRequestedForm } from '../../src/context/requested-form.ts'

const fields = ['name', 'price', 'total']
const felder = ['Name', 'Preis', 'Summe']

test.each<[prompt: string, style: string, pieces?: string[]]>([
  ['List three cities in France as a bullet list.', 'as a bullet list'],
  ['Formal tone, as a table: sales by region', 'Formal tone, as a table'],
  ['Use bullet points, no more than 50 words.', 'Use bullet points, no more than 50 words'],
  ['Explain recursion to a five-year-old.', 'to a five-year-old'],
  ['Summarize this in one sentence.', 'in one sentence'],
  ['Answer in German.', 'Answer in German'],
  ['Write a haiku about autumn.', 'Write a haiku'],
  ['Make it sound professional.', 'Make it sound professional'],
  ['Keep it short: what is DNS?', 'Keep it short'],
  ['Return name, price, total as JSON.', 'as JSON', fields],
  ['Reply in JSON with fields name, price, total.', 'in JSON', fields],
  ['Show orders as a table with columns name, price, total.', 'as a table', fields],
  ['Give me name, price and total of each item.', '', fields],
  ['Make a table with name, price and total', 'Make a table', fields],
  ['What are our top products? name, price, total', '', fields],
  ['Which products sell best? As a table with columns name, price, total', 'As a table', fields],
  ['Can you list name, price and total of each product?', '', fields],
  ['Antworte auf Englisch.', 'Antworte auf Englisch'],
  ['Fasse den Text in drei Sätzen zusammen.', 'in drei Sätzen'],
  ['Schreibe förmlich und kurz.', 'Schreibe förmlich und kurz'],
  ['Kurze Antwort: Was ist DNS?', 'Kurze Antwort'],
  ['In drei Stichpunkten, locker formuliert', 'In drei Stichpunkten, locker formuliert'],
  ['Kurz und sachlich: Name, Preis, Summe', 'Kurz und sachlich', felder],
  ['In three bullet points, please: what is DNS?', 'In three bullet points'],
  ['分三点回答：什么是DNS？', '分三点'],
  ['Gib mir Name, Preis und Summe als Tabelle.', 'als Tabelle', felder],
  ['Bitte als Tabelle mit den Spalten Name, Preis, Summe.', 'als Tabelle', felder],
  ['Mach eine Tabelle mit Name, Preis und Summe.', 'Mach eine Tabelle', felder],
  ['以JSON格式返回姓名、年龄、城市', '以JSON格式', ['姓名', '年龄', '城市']],
  ['用表格列出名称、价格、总额', '用表格', ['名称', '价格', '总额']],
  ['简短回答：什么是DNS？', '简短回答'],
  ['用英文回答', '用英文'],
  ['口语化一点，解释DNS', '口语化'],
])('%s', (prompt, style, pieces = []) => {
  const { style: read, structure } = readRequestedForm(prompt)
  expect([read, structure.map(({ expected }) => expected)]).toEqual([style, pieces])
})

test.each([
  'How many rows are in the orders table?',
  'Which list in the file has the most names?',
  'Is the email in the letter from the bank?',
  'How many words are in the file?',
  'How often do two words appear together?',
  'How do I say "thank you" in German?',
  'In other words, it failed?',
  'Compare Paris, Rome and Berlin.',
  'Show Apple, Google and Meta.',
  'Which of these is a fruit? Apple, Car, House',
  'Is there a table with customers, orders and invoices?',
  'How do I create a table with id, name and price?',
  'Why does my query not return the columns id, name and price?',
  'What is the difference between the columns cost, price and total?',
  'Translate these words: apple, pear and plum.',
  'Ann worked as writer, actor and director.',
  'A recipe for five people?',
  'Book a table for five',
  'Is this toy safe for a child?',
  'How do I center a div in HTML?',
  'What is a namespace in XML?',
  'How do I write a comment in json?',
  'Which products have descriptions with less than 50 words?',
  'Can a password be short?',
  '常用英语单词有哪些?',
  '密码可以用英文字母吗?',
  'Wie viele Zeilen hat die Tabelle?',
  'Steht der Preis in der Tabelle?',
  'Was ist mit der Liste passiert?',
  '用英文怎么说谢谢？',
  '这个表格有多少行？',
])('asks for no form: %s', (prompt) => {
  expect(readRequestedForm(prompt)).toEqual({ style: '', structure: [] })
})
