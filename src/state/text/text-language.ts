/** A language in which Mason has texts of its own for users. */
export type TextLanguage = 'en' | 'zh'

const kana = /[\p{Script=Hiragana}\p{Script=Katakana}]/u
const english = /\b(?:what|how|which|who|the|of|is|are|list|show|total|average)\b/i

/** The language to answer a text in, by rule: Chinese where the sentence is, also with names of others in it; else English. */
export const readTextLanguage = (text: string): TextLanguage =>
  /\p{Script=Han}/u.test(text) && !kana.test(text) && !english.test(text) ? 'zh' : 'en'
