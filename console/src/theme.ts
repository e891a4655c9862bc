export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

export const readTheme = (): Theme => {
  const kept = localStorage.getItem('mason-theme') as Theme
  return themes.includes(kept) ? kept : 'system'
}

export const applyTheme = (theme: Theme): void => {
  document.documentElement.dataset.theme = theme
  localStorage.setItem('mason-theme', theme)
}
