import { createContext, useContext } from 'react'
import { type Dictionary, en } from './en.ts'
import { zh } from './zh.ts'

export const languages = { en: 'English', zh: '中文' } as const
export type Language = keyof typeof languages
const dictionaries: Record<Language, Dictionary> = { en, zh }

type Texts = { t: Dictionary; language: Language; choose(language: Language): void }

export const readLanguage = (): Language => {
  const kept = localStorage.getItem('mason-language')
  if (kept === 'en' || kept === 'zh') return kept
  return navigator.language.startsWith('zh') ? 'zh' : 'en'
}

export const toTexts = (language: Language): Dictionary => dictionaries[language]

export const TextsContext = createContext<Texts>({ t: en, language: 'en', choose: () => {} })

export const useTexts = (): Texts => useContext(TextsContext)

/** The word for a status. */
export const toWord = (t: Dictionary, status: string): string =>
  status === 'failed' ? t.failed_status : (t[status as keyof Dictionary] ?? status)
