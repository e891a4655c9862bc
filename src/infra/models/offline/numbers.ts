/** Numbers as people write them in tables, and back. */

const symbols = /^([$€£¥₹￥]|USD|EUR|GBP|CNY|RMB|JPY)\s*/i
const units =
  /\s*(%|％|[$€£¥₹￥]|USD|EUR|GBP|CNY|RMB|JPY|元|块|件|个|人|天|kg|g|km|cm|mm|ms|s|h|hrs?|hours?|mins?|minutes?|days?|GB|MB|KB|pts)$/i

/** `$1,234.50`, `(12)`, `12,5 %`, `1.234,56 €`, `3万` as numbers (percent as written: 12.5), else null. */
export const readNumber = (cell: string): number | null => {
  let text = cell.trim()
  if (/^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,10})?$/.test(text)) return Number(text)
  const dollars = /^\$(\d{1,3}(?:,\d{3})*|\d+)(\.\d+)?$/.exec(text)
  if (dollars) return Number((dollars[1] ?? '').replaceAll(',', '') + (dollars[2] ?? ''))
  if (text === '' || text.length > 40 || !/\d/.test(text)) return null
  let sign = 1
  if (/^\(.*\)$/.test(text)) {
    sign = -1
    text = text.slice(1, -1).trim()
  }
  if (/^[-−–+]/.test(text)) {
    if (!text.startsWith('+')) sign = -sign
    text = text.slice(1).trim()
  }
  text = text.replace(symbols, '').replace(units, '').trim()
  if (/^[-−]/.test(text)) {
    sign = -sign
    text = text.slice(1)
  }
  let scale = 1
  if (text.endsWith('万')) scale = 1e4
  if (text.endsWith('亿')) scale = 1e8
  const bare = plainDigits(scale === 1 ? text : text.slice(0, -1).trim())
  if (bare === null) return null
  const value = Number(bare) * scale
  return Number.isFinite(value) ? sign * value : null
}

const plainDigits = (text: string): string | null => {
  if (/^(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,2})?$/i.test(text)) return text
  if (/^\d{1,3}(?:,\d{3})+(?:\.\d+)?$/.test(text)) return text.replaceAll(',', '')
  if (/^\d{1,3}(?:[ \u00a0\u202f']\d{3})+(?:[.,]\d+)?$/.test(text))
    return text.replace(/[ \u00a0\u202f']/g, '').replace(',', '.')
  if (/^\d{1,3}(?:\.\d{3})+,\d+$/.test(text)) return text.replaceAll('.', '').replace(',', '.')
  if (/^\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?$/.test(text)) return text.replaceAll(',', '')
  return /^\d+,\d{1,2}$/.test(text) ? text.replace(',', '.') : null
}

/** The sign a cell carries: `$` before, `%` after, or nothing. */
export const unitOf = (cell: string): { before: string; after: string } => {
  const text = cell.trim().replace(/^[(-]+/, '')
  const before = /^[$€£¥₹￥]/.exec(text)?.[0] ?? ''
  const after = /(?:%|[€元])$/.exec(text)?.[0] ?? ''
  return { before, after: before ? '' : after }
}

export const decimalsOf = (value: number): number => {
  const text = plain(value)
  const dot = text.indexOf('.')
  return dot < 0 ? 0 : text.length - dot - 1
}

/** For expressions: digits only, never an exponent, never -0. */
export const plain = (value: number): string => {
  if (Object.is(value, -0)) return '0'
  const text = String(value)
  if (!/e/i.test(text)) return text
  return value.toLocaleString('en-US', { useGrouping: false, maximumFractionDigits: 20 })
}

export type NumberStyle = { before: string; after: string; decimals: number }
export const bareStyle: NumberStyle = { before: '', after: '', decimals: 0 }

/** For people: grouped digits, the column's own sign and as many decimals as the column has, never more than needed. */
export const show = (value: number, style: NumberStyle = bareStyle, extra = 0): string => {
  const most = Math.min(6, Math.max(style.decimals, extra))
  const least = style.before === '' && style.after !== '元' ? 0 : Math.min(most, 2)
  const [whole = '0', decimals = ''] = plain(Number(Math.abs(value).toFixed(most))).split('.')
  const keep = decimals === '' && style.decimals === 0 ? 0 : least
  const fraction = decimals.padEnd(keep, '0')
  const text = whole.replace(/\B(?=(?:\d{3})+$)/g, ',') + (fraction === '' ? '' : `.${fraction}`)
  return `${value < 0 && /[1-9]/.test(text) ? '-' : ''}${style.before}${text}${style.after}`
}
