/** The filters of a list: each a field that writes into the address, so that a link is the view. */
import type { JSX } from 'preact'
import type { ClientType } from '../../../contract/connections.js'
import type { Ownership } from '../../../contract/contexts.js'
import { type Address, hrefOf } from '../address.js'
import { spacedName } from '../words.js'

/** A filter of a route: of any text, or one of its words. */
export interface Filter {
  readonly name: string
  readonly words?: readonly string[]
  /** The route answers nothing without it. */
  readonly isNeeded?: true
}

export const text = (name: string): Filter => ({ name })
export const choice = (name: string, words: readonly string[]): Filter => ({ name, words })
export const flag = (name: string): Filter => choice(name, ['true', 'false'])

/** The orders of a list; with none chosen it has its own. */
export const ORDER: Filter = choice('order', ['newest', 'oldest'])

/** The words of filters that several lists have. */
export const CLIENT_TYPES: ClientType[] = ['browser', 'console', 'mobile', 'web']
export const OWNERSHIPS: Ownership[] = ['user-owned', 'worker']

/** The page begins anew with another filter: a cursor belongs to the walk before. */
function go({ path, query }: Address, name: string, value: string): void {
  const next = new URLSearchParams(query)
  next.delete('cursor')
  if (value === '') next.delete(name)
  else next.set(name, value)
  location.hash = hrefOf(path, next)
}

export function Filters({ filters, address }: { filters: readonly Filter[]; address: Address }): JSX.Element {
  const { path, query } = address
  return (
    <div class="filters">
      {filters.map(({ name, words }) => (
        // biome-ignore lint/a11y/noLabelWithoutControl: either of the two is one
        <label key={name}>
          {spacedName(name)}
          {words ? (
            <select value={query.get(name) ?? ''} onChange={(event) => go(address, name, event.currentTarget.value)}>
              <option value="">any</option>
              {words.map((word) => (
                <option key={word} value={word}>
                  {spacedName(word)}
                </option>
              ))}
            </select>
          ) : (
            // Its text is the writer's until it is done: the page is drawn again each second.
            <input
              key={query.get(name)}
              type="search"
              autocomplete="off"
              spellcheck={false}
              defaultValue={query.get(name) ?? ''}
              onChange={(event) => go(address, name, event.currentTarget.value.trim())}
            />
          )}
        </label>
      ))}
      {[...query.keys()].length > 0 && <a href={hrefOf(path)}>clear</a>}
    </div>
  )
}
