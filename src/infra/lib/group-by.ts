/** The items by a key of theirs, each group in the order of the items. */
export const groupBy = <Item>(
  items: readonly Item[],
  readKey: (item: Item) => string,
): Map<string, Item[]> => {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const group = groups.get(readKey(item))
    if (group) group.push(item)
    else groups.set(readKey(item), [item])
  }
  return groups
}
