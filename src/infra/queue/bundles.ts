/**
 * Sends together what is added in one turn of the event loop, at most `maxSize` at once: one round trip for a flood.
 * Each `add` settles as the sending of its bundle does.
 */
export const createBundles = <Item>(send: (items: Item[]) => Promise<void>, maxSize: number) => {
  let open: { items: Item[]; sent: Promise<void> } | undefined

  const begin = (): NonNullable<typeof open> => {
    const items: Item[] = []
    const sent = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      if (open?.items === items) open = undefined
      return send(items)
    })
    return { items, sent }
  }

  return {
    add(item: Item): Promise<void> {
      if (!open || open.items.length >= maxSize) open = begin()
      open.items.push(item)
      return open.sent
    },
  }
}
