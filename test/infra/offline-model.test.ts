import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { createOfflineFetch } from '../../src/infra/models/offline/fetch.ts'
import { reply } from '../../src/infra/models/offline/reply.ts'
import { openTestModels } from '../support/models.ts'
import { allTools, callsOf, play, toolList, userMessage } from './offline-chat.ts'

const orders = `order_id,date,region,product,customer,units,revenue,status
1001,2024-01-05,North,Widget,"Lovelace, Ada",10,"$1,200.50",paid
1002,2024-01-17,South,Gadget,Bob,3,$300.00,returned
1003,2024-02-02,North,Gadget,Carol,5,$500.00,paid
1004,2024-02-14,East,Widget,"Lovelace, Ada",7,$840.00,paid
1005,2024-03-01,South,Gizmo,Dan,2,$90.00,returned
1006,2024-03-09,West,Widget,Bob,12,"$1,440.00",pending
1007,2024-03-21,East,Gizmo,Carol,4,$180.00,paid
1008,2024-04-02,North,Gizmo,Dan,1,$45.00,cancelled
`
const ask = (question: string, text = orders): string =>
  play(question, { files: { 'orders.csv': text } }).text

describe('figures from a table', () => {
  it('answers two questions of one prompt, each figure calculated and with its lines', () => {
    const outcome = play('Which region sold the most, and what is the total revenue?', {
      files: { 'orders.csv': orders },
    })
    expect(outcome.text).toContain('Region with the highest total revenue: **North**, $1,745.50')
    expect(outcome.text).toContain(
      'North: $1,745.50 (3 rows: orders.csv, lines 2, 4, 9; 1200.5 + 500 + 45 = 1745.5)',
    )
    expect(outcome.text).toContain('Total revenue: **$4,595.50** (8 rows: orders.csv, lines 2-9)')
    const expressions = callsOf(outcome, 'calculate').map(({ expression }) => expression)
    expect(expressions).toContain('sum(1200.5, 500, 45)')
    expect(expressions).toContain('sum(1200.5, 300, 500, 840, 90, 1440, 180, 45)')
  })

  it('plans, reads and calculates in this order, with a sentence beside the calls', () => {
    const outcome = play('What is the total revenue?', { files: { 'orders.csv': orders } })
    expect(outcome.made.map(({ name }) => name)).toEqual(['update_todos', 'read_file', 'calculate'])
    expect(outcome.preparations).toEqual(['I am reading orders.csv.', 'I am working out the figure.'])
    expect(outcome.made[0]?.args.todos).toMatchObject([
      { id: 'read', dependencies: [], suggested_tools: ['read_file'] },
      { id: 'calculate', dependencies: ['read'], suggested_tools: ['calculate'] },
      { id: 'answer', dependencies: ['calculate'] },
    ])
  })

  it('gives another answer when the file is another', () => {
    const question = 'Which region sold the most?'
    expect(ask(question)).toContain('**North**')
    expect(ask(question, orders.replace('$300.00', '"$30,000.00"'))).toContain('**South**, $30,090.00')
  })

  it.each([
    ['How many orders were returned?', '**2** (2 rows: orders.csv, lines 3, 6)'],
    ['How many orders were not returned?', '**6**'],
    ['Sum of revenue where status = paid', 'Total revenue where status = paid: **$2,720.50**'],
    ['average revenue by product', 'Widget: $1,160.17'],
    ['What is the median revenue?', '**$400.00**'],
    ['top 3 customers by revenue', '1. Lovelace, Ada: $2,040.50'],
    ['bottom 2 products by units', '1. Gizmo: 7'],
    ['How many customers are there?', '**4**'],
    ['How many units were sold in North?', '**16**'],
    ['Who spent the most?', '**Lovelace, Ada**'],
    ['What percentage of orders were returned?', '**25%** (2 / 8'],
    ['share of revenue by region', 'North: 37.98%'],
    ['How many orders in March?', '**3**'],
    ['Total units between 2024-02-01 and 2024-03-10', '**26**'],
    ['Revenue by month', '2024-03: $1,710.00'],
    ['highest revenue in each region', 'South: $300.00'],
    ['What is the latest order?', '2024-04-02'],
    ['largest order', '**$1,440.00** (1006)'],
    ['cheapest order', '**$45.00** (1008)'],
    ['most common status', '**paid**, 4'],
    ['What is the status of order 1005?', 'status where order_id = 1005: **returned**'],
    ['which customers bought Widget?', '- Bob (orders.csv, line 7)'],
    ['How many rows are there?', '**8**'],
    ['average and maximum revenue', 'Average revenue: **$574.44**'],
    ['average and maximum revenue', 'Highest revenue: **$1,440.00**'],
    ['How many orders are over 500?', '**3**'],
    ['compare North and South', 'North **$1,745.50**, South **$390.00**; difference $1,355.50'],
    ['compare revenue in Q1 and Q2', 'difference $4,505.50'],
    ['Which month had the highest revenue?', '**2024-03**, $1,710.00'],
    ['what is 10% of the total revenue?', '**$459.55**'],
    ['Which customer placed the most orders?', 'highest number of rows: **Lovelace, Ada**'],
    ['In North, how many orders were paid?', '**2**'],
    ['In orders.csv, how many orders did Bob make?', '**2**'],
    [
      'Give me the total revenue and the best-selling product.',
      'Product with the highest total revenue: **Widget**',
    ],
    ['sort the orders by revenue', '2. **1001**: $1,200.50'],
    ['Is North bigger than South?', '(North > South)'],
    ['每个产品卖了多少件？', 'Widget: 29'],
    ['退货率是多少', '**25%** (2 / 8'],
    ['营收最高的前3个客户', '3. Carol: $680.00'],
    ['哪个地区的销售额最高？', '**North**'],
    ['总销售额是多少？', '**$4,595.50**'],
    ['有多少订单退货了？', '**2**'],
    ['按地区统计销售额', 'East: $1,020.00'],
    ['2024年3月的总销售额', '**$1,710.00**'],
    ['平均 revenue 是多少', '**$574.44**'],
    ['列出所有 paid 的订单', '| 8 | 1007 |'],
  ])('answers "%s" with %s', (question, expected) => {
    expect(ask(question)).toContain(expected)
  })

  it('lists the rows that fit as a table with their lines', () => {
    const text = ask('list all paid orders')
    expect(text).toContain('4 rows where status = paid (orders.csv, lines 2, 4-5, 8)')
    expect(text.match(/^\| \d+ \|/gm)).toEqual(['| 2 |', '| 4 |', '| 5 |', '| 8 |'])
  })

  it('says so when no row fits, with the values there are', () => {
    expect(ask('Sum of revenue where status = lost')).toContain(
      'status holds: paid, returned, pending, cancelled',
    )
  })

  it('gives no figure for a word the file does not know', () => {
    expect(ask('What is the total population of France?')).toContain('I found no column for "population"')
  })

  it('does not count a totals line twice', () => {
    const text = 'item,amount\nTea,10\nCoffee,20\nTotal,30\n'
    expect(ask('What is the total amount?', text)).toMatch(/\*\*30\*\* .*line 4 is a totals line/)
  })

  it('multiplies quantity and price where there is no amount', () => {
    expect(ask('total revenue', 'product,quantity,price\nA,2,10\nB,3,5.5\n')).toContain('**36.5**')
  })

  it('follows up on the question before', () => {
    const files = { 'orders.csv': orders }
    const conversation =
      'user: What is the total revenue in North?\nassistant: Total revenue where region = North: $1,745.50'
    expect(play('And in South?', { files, conversation }).text).toContain(
      'Total revenue where region = South: **$390.00**',
    )
    expect(play('那 East 呢？', { files, conversation }).text).toContain('**$1,020.00**')
    expect(play('What about the average?', { files, conversation }).text).toContain(
      'Average revenue where region = North: **$581.83**',
    )
  })
})

describe('kinds of files', () => {
  const answer = (name: string, text: string, question: string): string =>
    play(question, { files: { [name]: text } }).text

  it.each([
    ['a.tsv', 'name\tpoints\nAnn\t5\nBen\t9\n', 'Who has the most points?', '**Ben**'],
    ['a.csv', 'name;points\nAnn;1.234,50\nBen;9,25\n', 'total points', '**1,243.75**'],
    ['a.csv', 'name,note,points\nAnn,"said ""hi"",\nthen left",5\nBen,,7\n', 'total points', 'lines 2, 4'],
    ['a.csv', '10,20\n30,40\n', 'sum of column 2', '**60**'],
    ['a.csv', 'name,rate\nAnn,12.5%\nBen,7.5%\n', 'average rate', '**10%**'],
    [
      'a.md',
      '# Stock\n\n| Item | Qty |\n| --- | ---: |\n| Bolt | 100 |\n| Nut | 250 |\n',
      'total quantity',
      '**350** (2 rows: a.md, lines 5-6)',
    ],
    [
      'a.json',
      '{"staff":[{"name":"Ann","pay":{"base":5}},{"name":"Ben","pay":{"base":9}}]}',
      'Who has the highest pay base?',
      '**Ben**, 9',
    ],
    ['a.jsonl', '{"name":"Ann","points":5}\n{"name":"Ben","points":9}\n', 'average points', '**7**'],
    ['a.txt', 'Rent: $1,200\nFood: $350.50\nTransport: $90\n', 'What is the total?', '**$1,640.50**'],
    ['a.txt', 'Name: Ann\nAge: 30\n\nName: Ben\nAge: 45\n', 'Who is the oldest?', '**Ben**, 45'],
    [
      '销售.csv',
      '日期,地区,产品,数量,金额\n2024-01-02,华东,手机,3,"9,000"\n2024-01-05,华北,电脑,1,6000\n',
      '华东的金额合计',
      '**9,000**',
    ],
  ])('reads %s %j: "%s"', (name, text, question, expected) => {
    expect(answer(name, text, question)).toContain(expected)
  })

  it('reads a table in the prompt itself', () => {
    expect(play('name,score\nAnn,5\nBob,9\nCy,7\n\nWho has the highest score?').text).toContain('**Bob**, 9')
  })
})

describe('text', () => {
  const handbook = `# Handbook

## Refunds
Customers can ask for a refund within 30 days of delivery.
Refunds are paid to the original card.

## Shipping
Express shipping costs $12.
Contact: Jane Miller, jane@example.com
Deadline: 2024-09-30
`
  const log =
    '10:00:00 INFO start\n10:00:01 ERROR db timeout\n10:00:03 ERROR card error\n10:00:04 INFO error count 2\n'

  it('searches and reads at once, and quotes the lines with the paragraph under a heading', () => {
    const outcome = play('What does the handbook say about refunds?', { files: { 'handbook.md': handbook } })
    expect(outcome.made.map(({ name }) => name)).toEqual(['update_todos', 'search_file_content', 'read_file'])
    expect(outcome.text).toContain('line 4: Customers can ask for a refund within 30 days of delivery.')
    expect(outcome.text).not.toContain('Express')
  })

  it.each([
    ['When is the deadline?', 'Deadline: 2024-09-30'],
    ['How much does express shipping cost?', 'line 8: Express shipping costs $12.'],
    ['Who is the contact?', 'Jane Miller'],
    ['文件中关于 refund 说了什么？', '第 4 行'],
    ['Summarize this document', "I can't write a summary"],
  ])('answers "%s" from prose with %s', (question, expected) => {
    expect(play(question, { files: { 'handbook.md': handbook } }).text).toContain(expected)
  })

  it('counts lines with the capitals as they are asked for', () => {
    const count = (question: string) => play(question, { files: { 'app.log': log } }).text
    expect(count('How many lines mention ERROR?')).toContain(
      '**2**: 2 lines of app.log mention "ERROR" (2-3)',
    )
    expect(count('how many lines contain "error"?')).toContain('**2**')
    expect(count('How many errors are there?')).toContain('**3**')
    expect(count('有多少行包含ERROR？')).toContain('**2**')
  })

  it('counts matches the search does not show', () => {
    const long = Array.from({ length: 700 }, (_, i) => `line ${i} ${i % 2 ? 'ERROR' : 'ok'}`).join('\n')
    expect(play('How many lines mention ERROR?', { files: { 'big.log': long } }).text).toContain('**350**')
  })

  it('says so when nothing fits', () => {
    expect(play('What does it say about dragons?', { files: { 'handbook.md': handbook } }).text).toContain(
      'Nothing in handbook.md mentions "dragons".',
    )
  })
})

describe('several files', () => {
  const files = {
    'y2023.csv': 'region,amount\nNorth,10\nSouth,20\n',
    'y2024.csv': 'region,amount\nNorth,15\nSouth,40\n',
  }

  it('asks which one when the request does not tell, and goes by the answer', () => {
    const outcome = play('What is the total amount?', {
      files,
      instead: (name) => (name === 'ask_user' ? 'y2024.csv' : undefined),
    })
    expect(callsOf(outcome, 'ask_user')).toMatchObject([
      { options: ['y2023.csv', 'y2024.csv', 'All of them together'] },
    ])
    expect(outcome.text).toContain('**55**')
    const all = play('What is the total amount?', {
      files,
      instead: (name) => (name === 'ask_user' ? 'All of them together' : undefined),
    })
    expect(all.text).toContain('**85**')
  })

  it('answers for each when nobody can be asked', () => {
    const { text } = play('What is the total amount?', { files, tools: ['read_file', 'calculate'] })
    expect(text).toMatch(/y2023\.csv: .*\*\*30\*\*[\s\S]*y2024\.csv: .*\*\*55\*\*/)
  })

  it('takes the named one, all of them, or compares two', () => {
    expect(play('What is the total amount in y2024.csv?', { files }).text).toContain('**55**')
    expect(play('What is the total amount across all files?', { files }).text).toContain('**85**')
    expect(play('compare y2023.csv and y2024.csv', { files }).text).toContain('difference 25')
  })

  it('reads two files at once and finds the right one for each question, with previews or without', () => {
    const two = {
      'staff.csv': 'employee,sales\nAnn,5\nBob,9\n',
      'notes.txt': 'The office opens at nine.\nRefunds take five days.\n',
    }
    for (const previews of [true, false]) {
      const { text } = play('Which employee sold the most, and what do the notes say about refunds?', {
        files: two,
        previews,
      })
      expect(text).toContain('**Bob**, 9')
      expect(text).toContain('Refunds take five days.')
    }
  })

  it('asks which column when several fit', () => {
    const outcome = play('What is the total?', {
      files: { 'pl.csv': 'month,income,expense\nJan,10,4\nFeb,20,8\n' },
      instead: (name) => (name === 'ask_user' ? 'expense' : undefined),
    })
    expect(callsOf(outcome, 'ask_user')).toMatchObject([{ options: ['income', 'expense'] }])
    expect(outcome.text).toContain('Total expense: **12**')
  })
})

describe('without files', () => {
  it.each([
    ['what is 12.5% of 480?', '480 * 12.5 / 100', '**60**'],
    ['What is 15% tip on 60?', '60 * 15 / 100', '**9**'],
    ['increase 200 by 15%', '200 * (1 + 15 / 100)', '**230**'],
    ['(3+4)*2^3', '(3+4)*2^3', '**56**'],
    ['what is 1,200 times 3 plus 4?', '1200 * 3 + 4', '**3,604**'],
    ['What is the sum of 3, 4 and 5?', 'sum(3, 4, 5)', '**12**'],
    ['square root of 144', 'sqrt(144)', '**12**'],
    ['3乘以5加2等于多少', '3 * 5 + 2', '**17**'],
    ['480的12.5%是多少？', '480 * 12.5 / 100', '**60**'],
  ])('works out "%s"', (question, expression, result) => {
    const outcome = play(question)
    expect(callsOf(outcome, 'calculate')).toEqual([{ expression }])
    expect(outcome.text).toContain(result)
  })

  it.each(['Write a poem about the sea', 'How tall is Mount Everest?', 'hello', '写一首诗', ''])(
    'says plainly what it is: "%s"',
    (prompt) => {
      const outcome = play(prompt)
      expect(outcome.made).toEqual([])
      expect(outcome.text).toMatch(/rules engine|规则引擎/)
      expect(outcome.text).toContain('OPENAI_API_KEY')
    },
  )
})

describe('when tools fail', () => {
  const files = { 'orders.csv': orders }

  it('reads by search where read_file fails', () => {
    const outcome = play('What is the total revenue?', {
      files,
      instead: (name) => (name === 'read_file' ? 'Error: disk' : undefined),
    })
    expect(callsOf(outcome, 'search_file_content')).toEqual([{ file_path: 'orders.csv', pattern: '.' }])
    expect(outcome.text).toContain('**$4,595.50**')
  })

  it('says what failed when the other way fails too, and asks nothing twice', () => {
    const outcome = play('What is the total revenue?', {
      files,
      instead: (name) => (name === 'update_todos' ? undefined : 'Error: disk'),
    })
    expect(outcome.text).toContain('I could not read orders.csv: Error: disk')
    const asked = outcome.made.map((made) => JSON.stringify([made.name, made.args]))
    expect(new Set(asked).size).toBe(asked.length)
  })

  it('says that figures are its own where calculate is not there', () => {
    const { text } = play('What is the total revenue?', { files, tools: ['read_file'] })
    expect(text).toContain('**$4,595.50**')
    expect(text).toContain('my own arithmetic')
  })

  it('reads on where a result was cut', () => {
    const rows = Array.from({ length: 900 }, (_, i) => `${i},${i}`).join('\n')
    const big = { 'big.csv': `id,amount\n${rows}\n` }
    let cut = false
    const outcome = play('total amount', {
      files: big,
      previews: false,
      instead: (name) => {
        if (name !== 'read_file' || cut) return undefined
        cut = true
        return `File 'big.csv', lines 1-901 of 901:\n1: id,amount\n2: 0,0\n3: 1,1\n[cut: 9999 characters in all]`
      },
    })
    expect(outcome.text).toContain('**404,550**')
  })

  it('sends a call again that was not run, but not one that was refused', () => {
    const messages = (content: string) => [
      { role: 'user', content: userMessage('What is the total revenue?', { files }) },
      {
        role: 'assistant',
        content: '',
        tool_calls: [
          {
            id: 'a',
            type: 'function',
            function: { name: 'read_file', arguments: '{"file_path":"orders.csv"}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'a', content },
      { role: 'user', content: '# Correction\n- the arguments do not check' },
    ]
    const next = (content: string) =>
      reply({ messages: messages(content), tools: toolList(allTools) }, 'planner').tool_calls.map(
        ({ name }) => name,
      )
    expect(next('Refused: the arguments of read_file do not check')).toEqual(['search_file_content'])
    expect(next('[no result]')).toEqual(['search_file_content'])
  })
})

describe('the other roles', () => {
  const format = (name: string, properties: Record<string, unknown>) => ({
    type: 'json_schema',
    json_schema: { name, schema: { type: 'object', properties, required: Object.keys(properties) } },
  })
  const json = (
    role: string,
    content: string,
    properties: Record<string, unknown>,
  ): Record<string, unknown> =>
    JSON.parse(
      reply({ messages: [{ role: 'user', content }], response_format: format(role, properties) }, role).text,
    )
  const text = { type: 'string' }

  it('understand names scenario, goal and style, and fills unknown properties with the least', () => {
    const content =
      '# Request\nWhat is the total revenue? Answer in bullet points.\n\n# Files\n- orders.csv (text/csv)'
    const nested = { type: 'object', properties: { n: { type: 'integer', minimum: 3 } } }
    const found = json('understand', content, {
      scenario: text,
      task_goal: text,
      output_style: text,
      output_structure: { type: 'array' },
      start: { enum: ['planner', 'x'] },
      extra: nested,
    })
    expect(found).toMatchObject({
      scenario: 'data_question',
      output_style: 'bullet list',
      output_structure: [],
      start: 'planner',
      extra: { n: 3 },
    })
    expect(found.task_goal).toContain('orders.csv')
    const long = json('understand', `# Request\n${'😀'.repeat(450)}`, { task_goal: text })
    expect(String(long.task_goal)).toMatch(/^(😀)+…$/u)
  })

  it('reflection finds the gap, judges the actions and completes todos', () => {
    const content = `# Request\nHow many lines mention ERROR?

# Results
## Action 4: read_file {"file_path":"a.log"}
File 'a.log', lines 1-1 of 1:
1: ERROR

## Action 5: search_file_content {"file_path":"b.log","pattern":"(error)"} (error)
Error: File not found at path 'b.log'.

# CURRENT PLAN STATUS
- [ ] read: Read a.log (processing)
- [ ] answer: Answer (pending after read)`
    const found = json('reflection', content, {
      reasoning: text,
      is_sufficient: { type: 'boolean' },
      knowledge_gap: text,
      judged: { type: 'array' },
      todos: { type: 'array' },
    })
    expect(found).toMatchObject({ is_sufficient: false, todos: [{ id: 'read', status: 'completed' }] })
    expect(found.knowledge_gap).toContain('Action 5 (search_file_content) failed')
    expect(found.judged).toMatchObject([
      { id: 4, important: false },
      { id: 5, relevance: 0.2, important: false },
    ])
  })

  it('reflection does not take a pattern for an error', () => {
    const content = `# Request\nx\n\n# Results\n## Action 4: search_file_content {"pattern":"(error)"}\nMatches in 'a.log': [Line 1: error]`
    expect(json('reflection', content, { is_sufficient: { type: 'boolean' } })).toEqual({
      is_sufficient: true,
    })
  })

  it('output restyles a draft it can restyle and passes the rest on', () => {
    const draft =
      '# Request\nx\n\n# Draft\nTotal: **12** (3 rows: a.csv, lines 2-4). Calculation: 3 + 4 + 5 = 12\n\n# Output style\n'
    const styled = (style: string) => json('output', draft + style, { answer: text }).answer
    expect(styled('in iambic pentameter')).toBe(
      'Total: **12** (3 rows: a.csv, lines 2-4). Calculation: 3 + 4 + 5 = 12',
    )
    expect(styled('short, plain text')).toBe('Total: 12.')
    expect(styled('upper case')).toMatch(/^TOTAL: /)
    expect(styled('bullet list')).toMatch(/^- Total/)
  })

  it('planner and output together fill the pieces of a structure, each of its type', () => {
    const structure = [
      '- total (number): total revenue',
      '- best (text): the region with the highest revenue',
      '- customers (list): list of all customers',
      '- by_region (table): revenue by region',
      '- last (date): date of the latest order',
      '- returned (boolean): whether any orders were returned',
      '- weather (number): the average temperature',
    ].join('\n')
    const { text: draft } = play('Analyse the orders: what is the total revenue?', {
      files: { 'orders.csv': orders },
      structure,
    })
    const table = {
      type: 'object',
      properties: { columns: { type: 'array', items: text }, rows: { type: 'array' } },
    }
    const properties = {
      total: { type: 'number' },
      best: text,
      customers: { type: 'array', items: {} },
      by_region: table,
      last: text,
      returned: { type: 'boolean' },
      weather: { type: 'number' },
    }
    const filled = json(
      'output',
      `# Request\nAnalyse\n\n# Output structure\n${structure}\n\n# Draft\n${draft}`,
      properties,
    )
    expect(filled).toMatchObject({
      total: 4595.5,
      best: 'North',
      customers: ['Lovelace, Ada', 'Bob', 'Carol', 'Dan'],
      last: '2024-04-02',
      returned: true,
    })
    expect(filled.by_region).toEqual({
      columns: ['region', 'revenue'],
      rows: [
        ['North', 1745.5],
        ['West', 1440],
        ['East', 1020],
        ['South', 390],
      ],
    })
    expect(filled.weather).toBeNull()
  })

  it('output fills pieces from a draft that another model wrote', () => {
    const content =
      '# Request\nx\n\n# Draft\nThe total revenue was $1,250.75 in 2 shops.\nThe best shop is **Riga**.\nThe report is due on 2024-05-06.\n\n# Output structure\n- due (date): due date of the report'
    const found = json('output', content, {
      total: { type: 'number', description: 'total revenue' },
      best: { ...text, description: 'best shop' },
      due: text,
      missing: { type: ['number', 'null'], description: 'headcount of elephants' },
    })
    expect(found).toMatchObject({ total: 1250.75, best: 'Riga', due: '2024-05-06' })
  })
})

describe('behind the OpenAI interface', () => {
  const client = new OpenAI({
    apiKey: 'none',
    baseURL: 'http://offline.invalid/v1',
    fetch: createOfflineFetch(),
    maxRetries: 0,
  })
  const messages = [
    {
      role: 'user' as const,
      content: userMessage('What is the total revenue?', { files: { 'orders.csv': orders } }),
    },
  ]
  const tools = toolList(allTools) as OpenAI.ChatCompletionTool[]

  it('answers the SDK with calls, its own name and an estimate of tokens', async () => {
    const answer = await client.chat.completions.create(
      { model: 'any', messages, tools },
      { headers: { 'x-mason-role': 'planner' } },
    )
    expect(answer.model).toBe('mason-offline')
    expect(answer.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { role: 'assistant', content: 'I am reading orders.csv.' },
    })
    expect(answer.usage?.prompt_tokens).toBe(
      Math.ceil(((messages[0]?.content.length ?? 0) + JSON.stringify(tools).length) / 4) + 1,
    )
    expect(answer.usage?.total_tokens).toBe(
      (answer.usage?.prompt_tokens ?? 0) + (answer.usage?.completion_tokens ?? 0),
    )
  })

  it('streams the same text and calls, usage in the last chunk', async () => {
    const stream = client.chat.completions.stream({
      model: 'any',
      messages,
      tools,
      stream_options: { include_usage: true },
    })
    const streamed = await stream.finalChatCompletion()
    const whole = await client.chat.completions.create({ model: 'any', messages, tools })
    expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content)
    const named = (answer: OpenAI.ChatCompletion) =>
      answer.choices[0]?.message.tool_calls?.map((call) =>
        call.type === 'function' ? [call.function.name, call.function.arguments] : [],
      )
    expect(named(streamed as OpenAI.ChatCompletion)).toEqual(named(whole))
    expect(streamed.usage).toEqual(whole.usage)
    expect(streamed.choices[0]?.finish_reason).toBe('tool_calls')
  })

  it('lists its one model', async () => {
    const models = await client.models.list()
    expect(models.data.map(({ id }) => id)).toEqual(['mason-offline'])
    expect((await client.models.retrieve('mason-offline')).owned_by).toBe('mason')
  })

  it('refuses in the shape of OpenAI errors', async () => {
    const offline = createOfflineFetch()
    const post = (body: string) => offline('http://x/v1/chat/completions', { method: 'POST', body })
    expect((await post('{')).status).toBe(400)
    expect(await (await post('{"messages":[]}')).json()).toMatchObject({
      error: { type: 'invalid_request_error', param: 'messages' },
    })
    await expect(
      client.embeddings.create({ model: 'm', input: 'x', encoding_format: 'float' }),
    ).rejects.toMatchObject({ status: 404, code: 'not_found' })
  })

  it('stops when its caller has gone', async () => {
    const signal = AbortSignal.abort(new Error('gone'))
    await expect(createOfflineFetch()('http://x/v1/models', { signal })).rejects.toThrow('gone')
  })

  it('serves the ordinary model client: calls of the planner, text as it streams, JSON for the other roles', async () => {
    const { models } = openTestModels({ baseUrl: 'http://offline.invalid/v1', fetch: createOfflineFetch() })
    const signal = AbortSignal.timeout(20_000)
    const content = userMessage('What is the total revenue?', { files: { 'orders.csv': orders } })
    const pieces: string[] = []
    const planned = await models.call(
      {
        role: 'planner',
        messages: [{ role: 'user', content }],
        tools: toolList(allTools).map((tool) => tool.function),
        onText: (piece) => pieces.push(piece),
      },
      signal,
    )
    expect(planned).toMatchObject({
      text: 'I am reading orders.csv.',
      finish: 'tool_calls',
      model: 'mason-offline',
    })
    expect(planned.tool_calls.map(({ name }) => name)).toEqual(['update_todos', 'read_file'])
    expect(pieces.join('')).toBe(planned.text)
    expect(planned.usage.prompt_tokens).toBeGreaterThan(100)
    const schema = { type: 'object', properties: { task_goal: { type: 'string' } }, required: ['task_goal'] }
    const understood = await models.call(
      { role: 'understand', messages: [{ role: 'user', content }], schema },
      signal,
    )
    expect(JSON.parse(understood.text)).toEqual({ task_goal: 'What is the total revenue? [orders.csv]' })
  })
})
