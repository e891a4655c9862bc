/** Names of tables in SQL: lower-case words of the file's name, none of them twice in a run. */

/** A word of SQL, in lower case, that is no name unless it is quoted. */
export const reservedWord =
  /^(all|alter|and|as|between|by|case|check|column|create|cross|default|delete|distinct|drop|else|end|escape|except|exists|from|full|group|having|if|in|index|inner|insert|intersect|into|is|join|left|like|limit|natural|not|null|on|or|order|outer|primary|references|right|select|set|table|then|to|transaction|union|unique|update|using|values|view|when|where|with)$/

/** A name that SQL accepts unquoted, made from a file or sheet name. */
export const toTableName = (file: string, taken: ReadonlySet<string>): string => {
  const words = file
    .replace(/\.(csv|tsv|tab|psv|xlsx|json|jsonl|ndjson|txt)(?=$|\/)/gi, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_+|(?<!_)_+$/g, '')
    .slice(0, 60)
  const plain =
    words === '' ? 'table_1' : /^\p{N}/u.test(words) || reservedWord.test(words) ? `t_${words}` : words
  for (let count = 1; ; count += 1) {
    // after a hundred of one name, the next free one is behind all names: their search must not be quadratic
    const name = count === 1 ? plain : `${plain}_${count <= 100 ? count : taken.size + count}`
    if (!taken.has(name)) return name
  }
}

/** A name as SQL wants it. */
export const quoteName = (name: string): string =>
  /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) && !reservedWord.test(name.toLowerCase())
    ? name
    : `"${name.replaceAll('"', '""')}"`
