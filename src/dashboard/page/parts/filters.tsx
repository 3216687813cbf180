/** The filters of a list: each a field that writes into the address, so that a link is the view. */
import type { JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { ClientType } from '../../../contract/connections.js'
import type { Ownership } from '../../../contract/contexts.js'
import { type Address, hrefOf } from '../address.js'
import { spacedName } from '../words.js'

/** A filter of a route: of any text, or one of its words. */
export interface Filter {
  readonly name: string
  readonly words?: readonly string[]
  /** The route answers nothing without it. */
  readonly isRequired?: true
}

export const text = (name: string): Filter => ({ name })
export const choice = (name: string, words: readonly string[]): Filter => ({ name, words })
export const flag = (name: string): Filter => choice(name, ['true', 'false'])

/** The orders of a list; with none chosen it has its own. */
export const ORDER: Filter = choice('order', ['newest', 'oldest'])

/** The words of filters that several lists have. */
export const CLIENT_TYPES: ClientType[] = ['browser', 'console', 'mobile', 'web']
export const OWNERSHIPS: Ownership[] = ['user-owned', 'worker']

/** Below this width the filters are folded up, so that the first row is in sight. */
const NARROW = 760

/** Another filter starts at the first page: a cursor is valid for one filter only. */
function go({ path, query }: Address, name: string, value: string): void {
  const next = new URLSearchParams(query)
  next.delete('cursor')
  if (value === '') next.delete(name)
  else next.set(name, value)
  location.hash = hrefOf(path, next)
}

interface FieldProps {
  name: string
  value: string
  onDone(value: string): void
}

/** Its text is the writer's until it is done: the page is drawn again each second. */
function TextField({ name, value, onDone }: FieldProps): JSX.Element {
  const field = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => {
    if (field.current) field.current.value = value
  }, [value])
  return (
    <input
      ref={field}
      type="search"
      name={name}
      autocomplete="off"
      spellcheck={false}
      placeholder={name.endsWith('prefix') ? 'begins with' : name.endsWith('_ms') ? 'at least' : 'exact'}
      defaultValue={value}
      // Reasons are shown with spaces.
      onChange={(event) => {
        const value = event.currentTarget.value.trim()
        onDone(name.endsWith('reason') ? value.replaceAll(' ', '_') : value)
      }}
    />
  )
}

export function Filters({ filters, address }: { filters: readonly Filter[]; address: Address }): JSX.Element | null {
  const { path, query } = address
  if (filters.length === 0) return null
  const given = [...query.keys()].filter((name) => name !== 'cursor' && name !== 'limit').length
  return (
    <details class="filters" open={innerWidth > NARROW || filters.some(({ isRequired }) => isRequired)}>
      <summary>Filters{given > 0 && ` (${given})`}</summary>
      <div>
        {filters.map(({ name, words }) => (
          // biome-ignore lint/a11y/noLabelWithoutControl: either of the two is one
          <label key={name}>
            {spacedName(name)}
            {words ? (
              <select
                name={name}
                value={query.get(name) ?? ''}
                onChange={(event) => go(address, name, event.currentTarget.value)}
              >
                <option value="">{name === 'order' ? 'default' : 'any'}</option>
                {words.map((word) => (
                  <option key={word} value={word}>
                    {spacedName(word)}
                  </option>
                ))}
              </select>
            ) : (
              <TextField name={name} value={query.get(name) ?? ''} onDone={(value) => go(address, name, value)} />
            )}
          </label>
        ))}
        {given > 0 && <a href={hrefOf(path)}>clear</a>}
      </div>
    </details>
  )
}
