/** Opens something once for all who ask for it, and anew where that has failed. */
export const openOnce = <Opened>(open: () => Promise<Opened>): (() => Promise<Opened>) => {
  let opened: Promise<Opened> | null = null
  return () =>
    (opened ??= open().catch((error: unknown) => {
      opened = null
      throw error
    }))
}
