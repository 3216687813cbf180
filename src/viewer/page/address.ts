/** The address bar as the page's state: below `#` stands a path and query of the router, spelled as the router has them. */
import { useLayoutEffect, useState } from 'preact/hooks'

export interface Address {
  /** Undecoded, as it is asked for: `/users/ada/summary`. */
  readonly path: string
  readonly query: URLSearchParams
}

export type Query = Readonly<Record<string, string | null | undefined>>

/** `path?query`, without what is not given. */
export function question(path: string, query: Query | URLSearchParams = {}): string {
  const given = query instanceof URLSearchParams ? [...query] : Object.entries(query)
  const search = new URLSearchParams(given.filter((pair): pair is [string, string] => Boolean(pair[1])))
  return search.size > 0 ? `${path}?${search}` : path
}

/** Where a link goes that shows the answer to a question. */
export const hrefOf = (path: string, query?: Query | URLSearchParams) => `#${question(path, query)}`

/** Sums have no page of their own: they stand above their list, or on the overview. */
const shownAt = (path: string) =>
  path
    .replace(/^(\/(?:connections|contexts|browser-windows|workers))\/(?:count|churn|available)$/, '$1')
    .replace(/^\/\w+\/summary$/, '') || '/'

function readAddress(): Address {
  const hash = location.hash.slice(1)
  const [path = ''] = hash.split('?', 1)
  return { path: shownAt(path), query: new URLSearchParams(hash.slice(path.length)) }
}

/** Where the page is; it follows links, back and forward. */
export function useAddress(): Address {
  const [address, setAddress] = useState(readAddress)
  useLayoutEffect(() => {
    const follow = () => setAddress(readAddress())
    addEventListener('hashchange', follow)
    // It may have changed between what was drawn and now.
    follow()
    return () => removeEventListener('hashchange', follow)
  }, [])
  return address
}
