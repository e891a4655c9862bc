import { type ReactNode, useEffect, useRef } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Item } from './table.tsx'

type Labels = { tokens: string; cost: string }

const sumByDay = (days: readonly Item[]): [number[], number[], number[]] => {
  const sums = new Map<number, [tokens: number, cost: number]>()
  // sums of different currencies would be none
  const one = days.find(({ currency }) => currency !== null)?.currency
  for (const { day, total_tokens, cost, currency } of days) {
    const at = Date.parse(String(day)) / 1000
    const [tokens, costs] = sums.get(at) ?? [0, 0]
    sums.set(at, [tokens + Number(total_tokens), costs + (currency === one ? Number(cost) : 0)])
  }
  const ordered = [...sums].sort(([a], [b]) => a - b)
  return [
    ordered.map(([at]) => at),
    ordered.map(([, [tokens]]) => tokens),
    ordered.map(([, [, cost]]) => cost),
  ]
}

/** Tokens and cost by day; the table below says the same in numbers. */
export default function Chart({ days, labels }: { days: Item[]; labels: Labels }): ReactNode {
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = ref.current
    if (!element) return
    const style = getComputedStyle(element)
    const color = (name: string) => style.getPropertyValue(name)
    const axis = {
      stroke: style.color,
      grid: { stroke: color('--line') },
      ticks: { stroke: color('--line') },
    }
    const bars = UPlot.paths.bars?.({ size: [0.6, 40] })
    const sums = sumByDay(days)
    const [first = 0, last = first] = [sums[0][0], sums[0].at(-1)]
    const plot = new UPlot(
      {
        width: element.clientWidth || 600,
        height: 220,
        scales: { x: { time: true, range: () => [first - 86_400, last + 86_400] }, cost: {} },
        legend: { show: true },
        series: [
          {},
          {
            label: labels.tokens,
            stroke: color('--accent'),
            fill: color('--accent-soft'),
            ...(bars && { paths: bars }),
          },
          { label: labels.cost, stroke: color('--warn'), scale: 'cost', width: 2 },
        ],
        axes: [axis, { ...axis, size: 80 }, { ...axis, side: 1, scale: 'cost', size: 60 }],
      },
      sums,
      element,
    )
    const fit = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: 220 }))
    fit.observe(element)
    return () => {
      fit.disconnect()
      plot.destroy()
    }
  }, [days, labels.tokens, labels.cost])
  return <div ref={ref} className="chart" />
}
