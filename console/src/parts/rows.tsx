import { useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, type ReactNode, useEffect, useRef } from 'react'

const height = 30

type Props<Item> = {
  items: Item[]
  label: string
  selected: number | undefined
  onSelect(id: number): void
  render(item: Item, at: number): ReactNode
}

/** A list of which only what is visible is drawn. Arrow keys, Home and End move the selection. */
export const Rows = <Item extends { id: number }>({
  items,
  label,
  selected,
  onSelect,
  render,
}: Props<Item>): ReactNode => {
  const ref = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => ref.current,
    estimateSize: () => height,
    overscan: 12,
    initialRect: { width: 800, height: 600 },
  })
  const at = items.findIndex(({ id }) => id === selected)
  // not again when rows are added
  // biome-ignore lint/correctness/useExhaustiveDependencies: the selection alone moves the list
  useEffect(() => {
    if (at >= 0) rows.scrollToIndex(at)
  }, [selected])
  const onKeyDown = (event: KeyboardEvent) => {
    const next = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: items.length - 1,
      PageDown: at + 10,
      PageUp: at - 10,
    }[event.key]
    if (next === undefined) return
    event.preventDefault()
    const item = items[Math.max(0, Math.min(next, items.length - 1))]
    if (item) onSelect(item.id)
  }
  const visible = rows.getVirtualItems()
  const isThere = visible.some(({ index }) => index === at)
  return (
    <div
      ref={ref}
      className="rows"
      role="listbox"
      aria-label={label}
      tabIndex={0}
      onKeyDown={onKeyDown}
      aria-activedescendant={isThere ? `row-${selected}` : undefined}
      data-scroll-restoration-id={label}
    >
      <div role="presentation" className="all" style={{ height: rows.getTotalSize() }}>
        {visible.map(({ index, start }) => {
          const item = items[index] as Item
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list has the keys
            <div
              key={item.id}
              id={`row-${item.id}`}
              role="option"
              tabIndex={-1}
              aria-selected={item.id === selected}
              aria-posinset={index + 1}
              aria-setsize={items.length}
              className="row-line"
              style={{ transform: `translateY(${start}px)` }}
              onClick={() => onSelect(item.id)}
            >
              {render(item, index)}
            </div>
          )
        })}
      </div>
    </div>
  )
}
