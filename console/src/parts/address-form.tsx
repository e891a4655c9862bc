import type { ComponentProps, ReactNode } from 'react'
import { useSearch } from '../router.tsx'

/** Text fields that are kept in the address. */
export const AddressForm = ({ children }: { children: ReactNode }): ReactNode => {
  const [, change] = useSearch()
  return (
    <form
      className="filter"
      onSubmit={(event) => {
        event.preventDefault()
        const fields = [...new FormData(event.currentTarget)]
        change(Object.fromEntries(fields.map(([name, value]) => [name, String(value).trim()])))
      }}
    >
      {children}
    </form>
  )
}

/** A field of an `AddressForm`; it shows what the address has. */
export const AddressField = (
  props: { name: string; label: ReactNode } & ComponentProps<'input'>,
): ReactNode => {
  const { name, label, ...input } = props
  const [{ [name]: value = '' }] = useSearch()
  return (
    <label>
      {label}
      <input key={value} name={name} defaultValue={value} {...input} />
    </label>
  )
}
