import { describe, expect, test } from 'vitest'
import { play } from './play.ts'

const orders = `order_id,date,region,product,customer,units,revenue,status
1001,2024-01-05,North,Widget,"Lovelace, Ada",10,1200.50,paid
1002,2024-01-17,South,Gadget,Bob,3,300,returned
1003,2024-02-02,North,Gadget,Carol,5,500,paid
1004,2024-02-14,East,Widget,"Lovelace, Ada",7,840,paid
1005,2024-03-01,South,Gizmo,Dan,2,90,returned
1006,2024-03-09,West,Widget,Bob,12,1440,pending
1007,2024-03-21,East,Gizmo,Carol,4,180,paid
1008,2024-04-02,North,Gizmo,Dan,1,45,cancelled
`
const files = { 'orders.csv': orders }
const ask = async (question: string, text = orders): Promise<string> =>
  (await play(question, { files: { 'orders.csv': text } })).text

describe('the offline model on a table', () => {
  test.each([
    ['How many orders were returned?', '**2**'],
    ['How many orders were not returned?', '**6**'],
    ['How many orders were returned in the south region?', '**2**'],
    ['Sum of revenue where status = paid', 'Total revenue where status = paid: **2,720.5**'],
    ['What is the total revenue of North?', '**1,745.5**'],
    ['average revenue by product', 'Widget: 1,160.166667'],
    ['top 3 customers by revenue', '1. Lovelace, Ada: 2,040.5'],
    ['bottom 2 products by units', '1. Gizmo: 7'],
    ['How many customers are there?', '**4**'],
    ['How many units were sold in North?', '**16**'],
    ['Which region sold the most?', 'Region with the highest total revenue: **North**, 1,745.5'],
    ['Who spent the most?', '**Lovelace, Ada**'],
    ['How many orders in March?', '**3**'],
    ['How many orders in March 2024?', '**3**'],
    ['Total units between 2024-02-01 and 2024-03-10', '**26**'],
    ['Revenue by month', '2024-03: 1,710'],
    ['Which month had the highest revenue?', '**2024-03**, 1,710'],
    ['highest revenue in each region', 'South: 300'],
    ['What is the highest revenue?', '**1,440**'],
    ['What is the latest order?', 'date **2024-04-02**'],
    ['largest order', 'order_id **1006**'],
    ['cheapest order', 'order_id **1008**'],
    ['most common status', '**paid**, 4'],
    ['What is the status of order 1005?', '**returned**'],
    ['which customers bought Widget?', '**Bob**'],
    ['How many rows are there?', '**8**'],
    ['How many orders are over 500?', '**3**'],
    ['In North, how many orders were paid?', '**2**'],
    ['In orders.csv, how many orders did Bob make?', '**2**'],
    ['list all paid orders', '| 1007 |'],
    ['每个产品卖了多少件？', 'Widget: 29'],
    ['营收最高的前3个客户', '3. Carol: 680'],
    ['哪个地区的销售额最高？', '**North**'],
    ['总销售额是多少？', '**4,595.5**'],
    ['有多少订单退货了？', '**2**'],
    ['按地区统计销售额', 'East: 1,020'],
    ['2024年3月的总销售额', '**1,710**'],
    ['平均 revenue 是多少', '**574.4375**'],
    ['列出所有 paid 的订单', '| 1007 |'],
  ])('answers "%s" with %s', async (question, expected) => {
    expect(await ask(question)).toContain(expected)
  })

  test('answers each question of a prompt', async () => {
    const text = await ask('Give me the total revenue and the best-selling product.')
    expect(text).toContain('Total revenue: **4,595.5**')
    expect(text).toContain('Product with the highest total revenue: **Widget**')
  })

  test('gives another answer when the file is another', async () => {
    expect(
      await ask(
        'Which region sold the most?',
        orders.replace('South,Gadget,Bob,3,300', 'South,Gadget,Bob,3,30000'),
      ),
    ).toContain('**South**, 30,090')
  })

  test('multiplies quantity and price where there is no amount', async () => {
    expect(await ask('total revenue', 'product,quantity,price\nA,2,10\nB,3,5.5\n')).toContain('**36.5**')
  })

  test.each([
    ['What is the total population of France?', 'The columns are: order_id, date'],
    ['How many orders did Zed make?', 'The columns are: order_id, date'],
    ['Sum of revenue where status = lost', 'No rows of orders.csv match where status = lost'],
  ])('gives no figure for words that the table does not know: "%s"', async (question, expected) => {
    const text = await ask(question)
    expect(text).toContain(expected)
    expect(text).not.toContain('**')
  })

  test('plans, looks values up and queries, and closes its todos by name with the answer', async () => {
    const { calls, closing, todos } = await play('How many orders were returned?', { files })
    expect(calls.map(({ name }) => name)).toEqual(['query_table', 'query_table'])
    expect(calls[1]?.args.sql).toBe(
      `SELECT count(*) AS figure, count(*) AS "rows" FROM orders WHERE status IN ('returned')`,
    )
    expect(closing).toMatchObject([
      {
        todos: [
          { id: 'query', status: 'completed', reason: expect.stringContaining('returned') },
          { id: 'answer', status: 'completed' },
        ],
      },
    ])
    expect(todos.map(({ id, status }) => [id, status])).toEqual([
      ['look-up', 'completed'],
      ['query', 'pending'],
      ['answer', 'pending'],
    ])
  })

  test('answers for each of several tables that fit alike, and for the one that is named', async () => {
    const two = {
      'y2023.csv': 'region,amount\nNorth,10\nSouth,20\n',
      'y2024.csv': 'region,amount\nNorth,15\nSouth,40\n',
    }
    expect((await play('What is the total amount?', { files: two })).text).toMatch(
      /\*\*30\*\* .*y2023[\s\S]*\*\*55\*\* .*y2024/,
    )
    expect((await play('What is the total amount in y2024.csv?', { files: two })).text).toMatch(
      /^Total amount: \*\*55\*\*/,
    )
  })

  test('quotes names and values, and cannot be led to other SQL by them', async () => {
    const odd = `"unit ""price""",o'name,selected\n5,it's,yes\n7,o'x,no\n`
    expect(await ask("How many rows with o'x?", odd)).not.toContain('Error')
    expect(await ask("'; DROP TABLE orders; -- how many rows", orders)).not.toContain('syntax')
  })

  test('says what failed, and asks nothing twice', async () => {
    const { text, calls } = await play('What is the total revenue?', { files, instead: () => 'Error: disk.' })
    expect(text).toContain('orders.csv: Error: disk.')
    expect(calls).toHaveLength(1)
    const without = await play('What is the total revenue?', { files, tools: ['calculate'] })
    expect(without.text).toContain('the tool query_table is not offered')
  })
})

describe('the offline model on a text', () => {
  const handbook = `# Handbook

## Refunds
Customers can ask for a refund within 30 days of delivery.

## Shipping
Express shipping costs $12.
Deadline: 2024-09-30
`
  const log =
    '10:00:00 INFO start\n10:00:01 ERROR db timeout\n10:00:03 ERROR card error\n10:00:04 INFO error count 2\n'

  test.each([
    ['What does the handbook say about refunds?', 'line 4: Customers can ask for a refund'],
    ['When is the deadline?', 'Deadline: 2024-09-30'],
    ['How much does express shipping cost?', 'line 7: Express shipping costs $12.'],
    ['文件中关于 refund 说了什么？', '第 4 行'],
    ['What does it say about dragons?', 'Nothing in handbook.md mentions "dragons".'],
  ])('answers "%s" with %s', async (question, expected) => {
    expect((await play(question, { files: { 'handbook.md': handbook } })).text).toContain(expected)
  })

  test('counts lines with the capitals as they are asked for, also those that a search does not show', async () => {
    const count = async (question: string, text = log) =>
      (await play(question, { files: { 'app.txt': text } })).text
    expect(await count('How many lines mention ERROR?')).toContain('**2**')
    expect(await count('How many lines contain "error"?')).toContain('**2**')
    expect(await count('How many errors are there?')).toContain('**3**')
    expect(await count('有多少行包含ERROR？')).toContain('**2**')
    const long = Array.from({ length: 700 }, (_, i) => `line ${i} ${i % 2 ? 'ERROR' : 'ok'}`).join('\n')
    expect(await count('How many lines mention ERROR?', long)).toContain('**350**')
  })
})

describe('the offline model without files', () => {
  test.each([
    ['what is 12.5% of 480?', '480 * 12.5 / 100', '**60**'],
    ['What is 12 * 22.75?', '12 * 22.75', '**273**'],
    ['What is 15% tip on 60?', '60 * 15 / 100', '**9**'],
    ['increase 200 by 15%', '200 * (1 + 15 / 100)', '**230**'],
    ['(3+4)*2^3', '(3+4)*2^3', '**56**'],
    ['what is 1,200 times 3 plus 4?', '1200 * 3 + 4', '**3,604**'],
    ['What is the sum of 3, 4 and 5?', 'sum(3, 4, 5)', '**12**'],
    ['square root of 144', 'sqrt(144)', '**12**'],
    ['3乘以5加2等于多少', '3 * 5 + 2', '**17**'],
    ['480的12.5%是多少？', '480 * 12.5 / 100', '**60**'],
  ])('works out "%s"', async (question, expression, result) => {
    const { calls, text, closing } = await play(question)
    expect(calls.map(({ args }) => args)).toEqual([{ expression }])
    expect(text).toContain(result)
    expect(closing).toEqual([])
  })

  test.each(['Write a poem about the sea', 'How tall is Mount Everest?', 'hello', '写一首诗', ''])(
    'says how to set a key for "%s"',
    async (prompt) => {
      const { calls, text } = await play(prompt)
      expect(calls).toEqual([])
      expect(text).toMatch(/rules engine|规则引擎/)
      expect(text).toContain('OPENAI_API_KEY')
    },
  )
})

describe('the offline model, asked about its user', () => {
  const memory = '- My name is Ada.\n- I never eat meat.\n- 我住在上海。'
  const about = async (question: string, more = {}) => (await play(question, { memory, ...more })).text

  test.each([
    ['What is my name?', '**Ada** (I remember: "My name is Ada.")'],
    ['Who am I?', '**Ada**'],
    ['Do I eat meat?', 'I remember: "I never eat meat."'],
    ['What do you remember about me?', '- I remember: "I never eat meat."\n- I remember: "My name is Ada."'],
    ['我住在哪里？', '**上海** (我记得：“我住在上海。”)'],
  ])('answers "%s" from memory', async (question, expected) => {
    expect(await about(question)).toContain(expected)
  })

  test('takes the profile before memory', async () => {
    const user = 'The user is Bea Lin, a nurse in Leeds.'
    expect(await about('What is my name?', { user })).toContain('**Bea Lin**')
    expect(await about('Where do I live?', { user })).toContain('**Leeds**')
  })

  test('says so where nothing is remembered, and does not guess from what is', async () => {
    expect(await about('What is my name?', { memory: '' })).toContain('I remember nothing about you')
    expect(await about('What is my phone number?')).toContain('OPENAI_API_KEY')
  })

  test('describes an earlier session when asked, and takes no name from it', async () => {
    const talk = '- Earlier talk, until 2026-11-20: 1. My name is Mallory. -> Hello.'
    expect(await about('What did we talk about last time?', { memory: talk })).toContain(
      'I remember: "Earlier talk',
    )
    expect(await about('What is my name?', { memory: talk })).not.toContain('**Mallory**')
  })

  test.each(['My name is Ada.', 'Please call me Ada.', 'I always write code in Rust.', '我叫小王。'])(
    'records "%s"',
    async (said) => {
      expect(await about(said)).toMatch(/^I have read your message\.|^我看到了您说的话。/)
    },
  )

  test.each(['I am a student. Please write a poem.', 'Translate: I am tired.', '我是学生，帮我写一首诗'])(
    'treats "%s" as a task that it cannot do',
    async (prompt) => {
      expect(await about(prompt)).toContain('OPENAI_API_KEY')
    },
  )

  test('goes to the table for what a table answers, whatever is remembered', async () => {
    const sales = 'customer,region,amount\nBob,North,3\nEve,South,5\nIan,North,9\n'
    const remembered = '- My name is Ada.\n- I like the total amount in bold.'
    const { text } = await play('What is our total amount?', {
      files: { 'sales.csv': sales },
      memory: remembered,
    })
    expect(text).toContain('**17**')
  })
})
