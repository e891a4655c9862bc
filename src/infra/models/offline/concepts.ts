import { findName, hasHan, nameWords, type Span, stem, type Text } from './text.ts'

/** Words that mean about the same in tables of business data, English and Chinese, so that names need not match. */
const concepts: readonly { name: string; words: readonly string[]; han: readonly string[] }[] = [
  concept(
    'revenue',
    'revenue sales sale sell turnover amount income spend earnings total value',
    '销售额 收入 营收 金额 营业额 总额 消费',
  ),
  concept('quantity', 'quantity qty units unit pieces count', '数量 件数 销量 多少件'),
  concept('price', 'price expensive cheap cheapest', '价格 单价 售价 贵 便宜'),
  concept('cost', 'cost expense expenses spending', '成本 费用 支出 开支'),
  concept('profit', 'profit margin gain', '利润 盈利'),
  concept('customer', 'customer client buyer purchaser', '客户 顾客 买家'),
  concept('product', 'product item article sku goods', '产品 商品 品名 货品'),
  concept('region', 'region area territory zone', '地区 区域 大区'),
  concept('date', 'date day when timestamp latest newest earliest recent', '日期 时间 最新 最近 最早 最晚'),
  concept('month', 'month monthly', '月份'),
  concept('year', 'year yearly annual', '年份'),
  concept('status', 'status state', '状态'),
  concept('name', 'name', '姓名 名称 名字'),
  concept('person', 'employee staff worker person salesperson seller rep agent', '员工 职员 人员 销售员'),
  concept('category', 'category type kind class group', '类别 分类 种类 类型 品类'),
  concept('salary', 'salary wage pay earn compensation', '工资 薪资 薪水 月薪 年薪'),
  concept('department', 'department dept team division', '部门 团队'),
  concept('city', 'city town', '城市'),
  concept('country', 'country nation', '国家'),
  concept('order', 'order purchase', '订单'),
  concept('score', 'score grade mark points', '分数 成绩 得分'),
  concept('rating', 'rating stars', '评分 星级'),
  concept('age', 'age old older oldest young younger youngest', '年龄 岁'),
  concept('stock', 'stock inventory', '库存'),
  concept('population', 'population inhabitant populous', '人口'),
  concept(
    'duration',
    'duration length latency elapsed long longer longest shorter shortest',
    '时长 耗时 长度',
  ),
  concept('weight', 'weight heavy heaviest lightest', '重量'),
  concept('return', 'returned return', '退货'),
  concept('refund', 'refunded refund', '退款'),
  concept('paid', 'paid', '已付 已支付 付款 支付'),
  concept('cancel', 'cancelled canceled cancel', '取消'),
  concept('pending', 'pending open waiting', '待处理 待定 未处理'),
  concept('shipped', 'shipped delivered', '发货 已发 送达'),
  concept('done', 'completed complete done finished closed', '完成 已完成'),
  concept('failed', 'failed failure fail', '失败'),
  concept('error', 'error', '错误 报错'),
  concept('warning', 'warning warn', '警告'),
  concept('north', 'north northern', '北方 北区 北部'),
  concept('south', 'south southern', '南方 南区 南部'),
  concept('east', 'east eastern', '东方 东区 东部'),
  concept('west', 'west western', '西方 西区 西部'),
]

function concept(name: string, words: string, han: string) {
  return { name, words: words.split(' ').map(stem), han: han.split(' ') }
}

/** The meanings a name or a value may have. */
export const conceptsOf = (name: string): Set<string> => {
  const stems = nameWords(name).map(stem)
  return new Set(
    concepts
      .filter(({ words, han }) => words.some((w) => stems.includes(w)) || han.some((h) => name.includes(h)))
      .map(({ name: concept }) => concept),
  )
}

/** Where a text speaks of one of these meanings, or null. */
export const findConcept = (text: Text, wanted: ReadonlySet<string>): Span | null => {
  for (const { name, words, han } of concepts) {
    if (!wanted.has(name)) continue
    const word = text.words.find((w) => words.includes(w.stem) && !operationWords.has(w.stem))
    if (word) return word
    for (const h of han) {
      const at = text.raw.indexOf(h)
      if (at >= 0) return { at, end: at + h.length }
    }
  }
  return null
}

export type Mention = Span & { score: number }

const generic = new Set(['id', 'name', 'no', 'number', 'code', 'the', 'of', 'usd', 'eur', 'cny', 'rmb'])
/** Columns with such names are weak: the question's "total" or "count" is mostly the operation. */
const operationWords = new Set(['total', 'sum', 'count', 'averag', 'number', 'max', 'min', 'mean', 'valu'])

/** How surely a text speaks of a column: 1 by its full name, less by part of it, 0.45 by meaning, null not at all. */
export const findColumn = (text: Text, name: string): Mention | null => {
  const words = nameWords(name)
  const full = findName(text, name)
  if (full) {
    const weak = words.every((word) => operationWords.has(stem(word)))
    return {
      ...full,
      score: weak ? 0.5 : 1 + 0.05 * (words.length - 1) + (findName(text, name, true) ? 0.02 : 0),
    }
  }
  if (hasHan(name)) {
    const bare = name.replace(/[（(].*?[)）]/g, '').trim()
    const at = bare.length > 1 ? text.lower.indexOf(bare.toLowerCase()) : -1
    if (at >= 0) return { at, end: at + bare.length, score: 0.95 }
  }
  const telling = words.filter((word) => !generic.has(word.toLowerCase()) && word.length > 1)
  const found = telling.map((word) => text.words.find((w) => w.stem === stem(word)) ?? null)
  const [first] = found.filter((word) => word !== null)
  if (first && found.every((word) => word !== null)) return { at: first.at, end: first.end, score: 0.8 }
  const head = found.at(-1)
  if (head && !operationWords.has(head.stem)) return { at: head.at, end: head.end, score: 0.6 }
  if (first && !operationWords.has(first.stem)) return { at: first.at, end: first.end, score: 0.5 }
  const meant = findConcept(text, conceptsOf(name))
  return meant && !operationWords.has(stem(text.raw.slice(meant.at, meant.end)))
    ? { at: meant.at, end: meant.end, score: 0.45 }
    : null
}
