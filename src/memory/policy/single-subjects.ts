import { normalizeText } from '../../state/text/words.ts'

/** Subjects of which a user has one at a time: a newer statement replaces an older one. */
const singleSubjects: readonly (readonly [subject: string, pattern: RegExp])[] = [
  ['form of address', /\bcall me\b|\baddress (?:me|the user) as\b|叫我|称呼/],
  ['name', /\bname is\b|\b(?:i am|i'm|user is) called\b|我叫|用户(?:名)?叫|名字(?:是|叫)/],
  ['home', /\b(?:live|lives|living) in\b|\b(?:moved|moving|relocated) to\b|住在|搬到|搬去|定居/],
  [
    'work',
    /\bworks? (?:as|at|for)\b|\b(?:job|profession|occupation) is\b|换工作|职业|在.{1,12}(?:做|当|任|工作)|是一名/,
  ],
  ['birthday', /\bborn (?:on|in)\b|\bbirthday\b|生日|出生/],
  ['time zone', /\btime ?zone\b|时区/],
  ['units', /\b(?:metric|imperial|us customary) units?\b|公制|英制/],
  [
    'language of answers',
    /\b(?:answers?|reply|replies|respond|write)\b.*\bin (?:british |american |plain )?(?:english|chinese|spanish|french|german|japanese|danish|\w+ese|\w+ish)\b|用(?:中文|英文|英语|日语|法语|德语|普通话).*(?:回答|回复)/,
  ],
]

const favourite = /\bfavou?rite ([\p{L} ]{2,30}?) (?:is|are)\b/u
const favouriteHan = /最(?:喜欢|爱)的(.{1,6}?)是/u

/** The single subject that a statement is about; null: none. */
export const detectSubject = (content: string): string | null => {
  const text = normalizeText(content)
  const favoriteThing = favourite.exec(text)?.[1] ?? favouriteHan.exec(text)?.[1]
  if (favoriteThing !== undefined) return `favourite ${favoriteThing}`
  return singleSubjects.find(([, pattern]) => pattern.test(text))?.[0] ?? null
}

const changePattern =
  /\b(?:(?<!from )now|no longer|any ?more|instead|switched|changed|rather)\b|现在|不再|改|换|更/
const negationPattern =
  /\b(?:not|never|no|don't|doesn't|won't|can't|dislikes?|hates?|avoids?)\b|n't\b|不|没|讨厌|别/

/** Whether a statement says that something has changed. */
export const statesChange = (content: string): boolean => changePattern.test(normalizeText(content))
/** Whether a statement denies something: with the same words it then means the opposite. */
export const statesNegation = (content: string): boolean => negationPattern.test(normalizeText(content))
