import { cutText } from '../state/text/cut-text.ts'
import { type UserContext, userFields } from '../state/user-context.ts'

/** Characters of one value, and of the whole description. */
const maxValue = 300
const maxDescription = 2000

/**
 * A short description of a user for prompts, by template: a sentence only where its fields are known, one line each, and
 * no filler; empty for an unknown user. Fields whose names begin with `_` are for machines and are left out.
 */
export const describeUser = (user: UserContext): string => {
  const text = (field: string): string => toText(user[field])
  const when = (value: string, line: string): string => (value === '' ? '' : line)
  const name = text('preferred_name') || text('name')
  const fullName = text('name')
  const others = Object.keys(user).filter(
    (field) => !(userFields as readonly string[]).includes(field) && !field.startsWith('_'),
  )
  const who = joinNonEmpty(', ', [
    joinNonEmpty(' ', [name, when(text('pronouns'), `(${text('pronouns')})`)]),
    text('occupation'),
  ])
  const is = joinNonEmpty(' ', [
    who,
    when(text('organization'), `at ${text('organization')}`),
    when(text('location'), `in ${text('location')}`),
  ])
  const lines = [
    when(is, `The user is ${is}.`),
    when(fullName !== name ? fullName : '', `Full name: ${fullName}.`),
    when(
      text('languages') || text('language'),
      `Speaks ${text('languages') || text('language')}${when(
        text('languages') && text('language'),
        `; prefers ${text('language')}`,
      )}.`,
    ),
    when(text('timezone'), `Time zone: ${text('timezone')}.`),
    when(text('expertise'), `Knows well: ${text('expertise')}.`),
    when(text('learning'), `Is learning: ${text('learning')}.`),
    when(text('interests'), `Interested in: ${text('interests')}.`),
    when(text('goals'), `Works towards: ${text('goals')}.`),
    when(text('preferences'), `Prefers: ${text('preferences')}.`),
    when(text('communication_style'), `Wants to be answered: ${text('communication_style')}.`),
    when(text('habits'), `Usually: ${text('habits')}.`),
    when(text('constraints'), `Keep in mind: ${text('constraints')}.`),
    when(text('about'), `About: ${text('about')}.`),
    ...others.map((field) => when(text(field), `${toWords(field)}: ${text(field)}.`)),
  ]
  return cutText(joinNonEmpty('\n', lines), maxDescription)
}

const joinNonEmpty = (between: string, parts: readonly string[]): string =>
  parts.filter((part) => part !== '').join(between)

type ContextValue = UserContext[string]

/** One line for people, without its full stop: lists with commas, records as `key: value`. */
const toText = (value: ContextValue | undefined): string => {
  const line = flattenValue(value).replaceAll(/\s+/g, ' ').trim()
  return cutText(line.replace(/[.。]$/u, ''), maxValue)
}

const flattenValue = (value: ContextValue | undefined): string => {
  if (value === undefined || value === null) return ''
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return value.map(flattenValue).join(', ')
  return Object.entries(value)
    .map(([key, item]) => `${toWords(key).toLowerCase()}: ${flattenValue(item)}`)
    .join('; ')
}

/** `favourite_team` as `Favourite team`. */
const toWords = (field: string): string => {
  const words = field.replaceAll(/[_\s]+/g, ' ').trim()
  return words.charAt(0).toUpperCase() + words.slice(1)
}
