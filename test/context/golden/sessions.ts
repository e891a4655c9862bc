import type { Session } from './runs.ts'

/** The sessions whose requests are the golden prompts: ordinary work, in English and Chinese. */

const call = (name: string, args: object, id: string) => ({ id, name, arguments: args })
const query = (sql: string, id: string) => call('query_table', { sql }, id)

const ordersCsv = `order_id,date,region,product,units,amount,paid
1001,2026-03-02,North,Widget,10,1200.50,true
1002,2026-03-03,South,Gadget,4,980.00,true
1003,2026-03-09,North,Widget,7,840.35,false
1004,2026-03-17,East,Gizmo,1,99.90,true
1005,2026-03-21,South,Widget,12,1440.60,true
1006,2026-03-30,West,Gadget,2,490.00,false
`

const policy = `# Sales policy
Amounts are in euros, without tax. A quarter is closed on the fifth working day after it.
## Regions
North, South, East and West. Orders of the web shop count for West.
## Corrections
Corrected orders keep their number. What is not paid after 60 days is written off.
`

const analysis = (more: object = {}) => ({
  scenario: 'data question',
  task_goal: 'Name the region with the highest sales in March 2026 and its lead over the next one',
  output_style: '',
  output_structure: [],
  start: 'planner',
  direction: 'Sum the amounts of orders.csv by region.',
  ...more,
})

/** The first step of a session, with a table, a document and a known user. */
export const tableFile: Session = {
  profile: {
    name: 'Ada Lovelace',
    occupation: 'controller',
    organization: 'Northwind',
    location: 'London',
    language: 'English',
    timezone: 'Europe/London',
  },
  memories: ['The user wants amounts rounded to whole euros.'],
  rows: [
    'no such column: sales',
    [
      { region: 'South', total: 2420.6 },
      { region: 'North', total: 2040.85 },
    ],
  ],
  turns: [
    {
      request: {
        prompt: 'Which region sold the most in March, and by how much more than the next one?',
        output: { style: 'two sentences at most' },
      },
      files: { 'orders.csv': ordersCsv, 'policy.md': policy },
      says: {
        understand: [analysis()],
        planner: [
          {
            text: 'I sum the sales by region.',
            tool_calls: [
              call(
                'update_todos',
                {
                  todos: [
                    { id: 'sum', task: 'Sum the sales of March by region', suggested_tools: ['query_table'] },
                    { id: 'compare', task: 'Compare the two best regions', dependencies: ['sum'] },
                  ],
                },
                'p1',
              ),
              query('SELECT region, SUM(sales) AS total FROM orders GROUP BY region', 'q1'),
            ],
          },
          {
            text: 'The column is called amount.',
            tool_calls: [
              query(
                "SELECT region, SUM(amount) AS total FROM orders WHERE date LIKE '2026-03%' GROUP BY region ORDER BY total DESC LIMIT 2",
                'q2',
              ),
            ],
          },
          { text: 'South sold the most in March: 2,421 euros, 380 euros more than North (orders.csv).' },
        ],
        reflection: [
          {
            reasoning: 'The query failed: the column does not exist.',
            is_sufficient: false,
            knowledge_gap: 'The sums by region; the column of the amounts is called amount.',
            follow_up_queries: ['SUM(amount) by region'],
          },
        ],
        output: [{ answer: 'South sold the most in March: 2,421 euros, 380 more than North.' }],
      },
    },
  ],
}

const contract = `# 供货合同 2026-017
甲方：北方机械有限公司。乙方：江南钢铁股份有限公司。
## 第三条 付款
预付款为合同总价的百分之三十，签约后十日内支付。
其余货款在验收合格后三十日内付清。
## 第五条 违约
逾期付款的，每日按未付金额的万分之五支付违约金。
## 第七条 保修
保修期为验收之日起十八个月。
`
const annex = `# 附件一
合同总价：人民币 1,860,000 元。
验收日期：2026-09-12。
`

/** A long turn: results, failures, nothing found, a plan half done, and few steps left. */
export const longTurn: Session = {
  memories: ['用户希望金额以万元为单位。'],
  turns: [
    {
      request: {
        prompt:
          '请根据合同.md和附件.md，写一份付款报告：各期应付金额、最迟付款日、以及如果尾款拖到 2026-12-01 才付，违约金是多少。请注明依据的条款，并检查合同里有没有关于发票的规定。',
        output: { tool: 'report' },
        limits: { max_steps: 27 },
      },
      files: { '合同.md': contract, '附件.md': annex },
      says: {
        understand: [
          analysis({
            scenario: '合同审查',
            task_goal: '写一份付款报告：各期金额、最迟付款日、违约金和发票规定',
            direction: '先找付款和违约条款，再算金额。',
          }),
        ],
        planner: [
          {
            text: '先找付款条款和总价。',
            tool_calls: [
              call(
                'update_todos',
                {
                  todos: [
                    { id: 'terms', task: '找出付款和违约条款', suggested_tools: ['search_file_content'] },
                    { id: 'invoice', task: '检查发票规定', suggested_tools: ['search_file_content'] },
                    {
                      id: 'amounts',
                      task: '计算各期金额和违约金',
                      dependencies: ['terms'],
                      suggested_tools: ['calculate'],
                      success_criteria: '每个数字都有条款和算式',
                    },
                  ],
                },
                'p1',
              ),
              call('search_file_content', { file_path: '合同.md', pattern: '付款|支付|违约' }, 'c1'),
              call('read_file', { file_path: '附件.md' }, 'c2'),
            ],
          },
          {
            text: '再查发票。',
            tool_calls: [
              call('search_file_content', { file_path: '合同.md', pattern: '发票' }, 'c3'),
              call('read_file', { file_path: '附件二.md' }, 'c4'),
            ],
          },
          {
            text: '换一个词再找发票的规定。',
            tool_calls: [
              call('search_file_content', { file_path: '合同.md', pattern: '税|票据|开票' }, 'c5'),
            ],
          },
          {
            text: '计算各期金额。',
            tool_calls: [
              call('calculate', { expression: '1860000 * 30%' }, 'c6'),
              call('calculate', { expression: '1860000 * 70%' }, 'c7'),
            ],
          },
          {
            text: '计算违约金：2026-10-12 到 2026-12-01 是 50 天。',
            tool_calls: [call('calculate', { expression: '1302000 * 0.0005 * 50' }, 'c8')],
          },
          {
            text: '预付款 55.8 万元；尾款 130.2 万元，最迟 2026-10-12；违约金 3.255 万元；合同没有发票规定。',
          },
        ],
        reflection: [
          {
            reasoning: '付款条款已找到；发票没有规定；附件二不存在。',
            is_sufficient: false,
            knowledge_gap: '合同里有没有用别的词写的发票规定',
            follow_up_queries: ['税', '开票'],
            judged: [{ id: 12, relevance: 0.4, important: false }],
            todos: [{ id: 'terms', status: 'completed' }],
          },
        ],
        output: [{ answer: '# 付款报告\n尾款最迟 2026-10-12 付清[^a8]。' }],
      },
    },
  ],
}

/** A later turn of a session with two earlier ones, which asks on. */
export const laterTurn: Session = {
  profile: { name: '王芳', language: '中文', timezone: 'Asia/Shanghai' },
  rows: [
    [{ region: 'South', total: 2420.6 }],
    'no such table: orders_april',
    [{ 月份: '四月', 合计: 3105.2 }],
  ],
  turns: [
    {
      request: { prompt: '三月份哪个地区卖得最多？', output: {} },
      files: { 'orders.csv': ordersCsv },
      says: {
        understand: [analysis({ task_goal: '找出三月销售额最高的地区' })],
        planner: [
          {
            text: '我来查一下。',
            tool_calls: [
              query(
                'SELECT region, SUM(amount) AS total FROM orders GROUP BY region ORDER BY 2 DESC LIMIT 1',
                'q1',
              ),
            ],
          },
          { text: '三月卖得最多的是 South，共 2,420.60 欧元（orders.csv）。' },
        ],
      },
    },
    {
      request: { prompt: '以后回答请用表格，金额取整。' },
      says: {
        planner: [
          {
            text: '我记下来。',
            tool_calls: [
              call('remember', { content: '用户希望回答用表格，金额取整。', kind: 'preference' }, 'r1'),
            ],
          },
          { text: '好的，以后用表格回答，金额取整。' },
        ],
        reflection: [{ reasoning: '已记住。', is_sufficient: true, knowledge_gap: '' }],
      },
    },
    {
      request: {
        prompt: '那四月呢？请和三月比较一下。',
        output: {
          structure: [
            { id: 'april', expected: '四月销售额，欧元', type: 'number' },
            { id: 'summary', expected: '与三月的比较，一句话', type: 'text' },
          ],
        },
      },
      files: { '四月.csv': '日期,地区,金额\n2026-04-02,North,1605.20\n2026-04-19,South,1500.00\n' },
      says: {
        understand: [analysis({ task_goal: '比较四月与三月的销售额', scenario: '数据问题' })],
        planner: [
          {
            text: '我查四月的数据。',
            tool_calls: [query('SELECT SUM(amount) FROM orders_april', 'q1')],
          },
          { text: '表名不对，换一个。', tool_calls: [query('SELECT SUM(金额) AS 合计 FROM 四月', 'q2')] },
          { text: '四月 3,105 欧元，三月 5,051 欧元。' },
        ],
        reflection: [
          {
            reasoning: '查询失败，表名不对。',
            is_sufficient: false,
            knowledge_gap: '四月的合计；表名要看文件列表。',
          },
        ],
        output: [{ april: 3105.2, summary: '四月比三月少 1,946 欧元。' }],
      },
    },
  ],
}
