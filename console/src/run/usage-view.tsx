import type { ReactNode } from 'react'
import { showMs, showNumber } from '../format.ts'
import { useTexts } from '../i18n/index.ts'
import { Scroll, Text } from '../parts/basics.tsx'
import type { Action, Run } from '../types.ts'

type Sum = { name: string; requests: number; ms: number; tokens: number; costs: Map<string, number> }

/** The model calls of the run, by model. */
const sumUp = (actions: readonly Action[]): Sum[] => {
  const sums = new Map<string, Sum>()
  for (const one of actions.flatMap((action) => action.model_calls ?? [])) {
    const name = `${one.model} · ${one.role}`
    const sum = sums.get(name) ?? { name, requests: 0, ms: 0, tokens: 0, costs: new Map() }
    sum.requests++
    sum.ms += one.ms
    sum.tokens += one.tokens
    if (one.currency !== null) sum.costs.set(one.currency, (sum.costs.get(one.currency) ?? 0) + one.cost)
    sums.set(name, sum)
  }
  return [...sums.values()].sort((a, b) => b.tokens - a.tokens)
}

export const UsageView = ({ actions, run }: { actions: Action[]; run: Run }): ReactNode => {
  const { t } = useTexts()
  return (
    <Scroll label={t.usage}>
      <table>
        <thead>
          <tr>
            <th>{t.model}</th>
            <th className="end">{t.requests}</th>
            <th className="end">{t.took}</th>
            <th className="end">{t.tokensUsed}</th>
            <th className="end">{t.cost}</th>
          </tr>
        </thead>
        <tbody>
          {sumUp(actions).map(({ name, requests, ms, tokens, costs }) => (
            <tr key={name}>
              <td>
                <Text>{name}</Text>
              </td>
              <td className="end num">{requests}</td>
              <td className="end num">{showMs(ms)}</td>
              <td className="end num">{showNumber(tokens)}</td>
              <td className="end num">
                {[...costs].map(([currency, cost]) => `${cost.toFixed(6)} ${currency}`).join(', ') || '–'}
              </td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th>{t.total}</th>
            <td />
            <td />
            <td className="end num">{showNumber(run.usage.total_tokens)}</td>
            <td />
          </tr>
        </tfoot>
      </table>
    </Scroll>
  )
}
