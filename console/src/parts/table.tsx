import type { ReactNode } from 'react'
import type { Json } from '../types.ts'
import { Scroll, Value } from './basics.tsx'

export type Item = Record<string, Json>

/** Items of the API in a table; the names of the columns are those of its fields. */
export const ItemsTable = (props: {
  label: string
  items: Item[]
  columns: string[]
  link?: (item: Item, content: ReactNode) => ReactNode
  acts?: (item: Item) => ReactNode
}): ReactNode => {
  const { label, items, columns, link, acts } = props
  return (
    <Scroll label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name}>{name}</th>
            ))}
            {acts && <td />}
          </tr>
        </thead>
        <tbody>
          {items.map((item, at) => (
            <tr key={String(item.id ?? at)}>
              {columns.map((name, column) => {
                const value = <Value of={item[name]} name={name} />
                return <td key={name}>{column === 0 && link ? link(item, value) : value}</td>
              })}
              {acts && <td className="acts">{acts(item)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}
