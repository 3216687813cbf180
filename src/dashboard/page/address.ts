/** The address bar as the page's state: below `#` stands a path and query of the router, spelled as the router has them. */
import { useLayoutEffect, useState } from 'preact/hooks'

export interface Address {
  /** Undecoded, as it is asked for: `/users/ada/summary`. */
  readonly path: string
  readonly query: URLSearchParams
}

export type Query = Readonly<Record<string, string | null | undefined>>

/** `path?query`, without what is not given. */
export function pathWithQuery(path: string, query: Query | URLSearchParams = {}): string {
  const given = query instanceof URLSearchParams ? [...query] : Object.entries(query)
  const search = new URLSearchParams(given.filter((pair): pair is [string, string] => Boolean(pair[1])))
  return search.size > 0 ? `${path}?${search}` : path
}

// As the address bar has them: printable ASCII, and neither what a URL reads as another separator nor what ends its path.
const WRITTEN = /^[!"$-[\]-~]*$/
const DOTS = /\/(\.|%2e){1,2}(\/|$)/i

/**
 * The URL of `asked`, a path and query below the router at `api`. `null` where a browser would read it as another origin, as
 * outside of the router or as another path than the one that is written: the key is sent along.
 */
export function urlBelow(api: string, asked: string): string | null {
  const [path = ''] = asked.split('?', 1)
  const url = api + asked
  if (!WRITTEN.test(path) || DOTS.test(path) || !URL.canParse(url)) return null
  const { href } = new URL(url)
  return href.startsWith(new URL(`${api}/`).href) ? href : null
}

/** Where a link goes that shows the answer to a question. */
export const hrefOf = (path: string, query?: Query | URLSearchParams) => `#${pathWithQuery(path, query)}`

/** Sums have no page of their own: they stand above their list, or on the overview. Workers are contexts. */
const shownAt = (path: string) =>
  path
    .replace(/^\/workers(\/(?:count|available))?$/, '/contexts')
    .replace(/^(\/(?:connections|contexts|browser-windows))\/(?:count|churn)$/, '$1')
    .replace(/^\/\w+\/summary$/, '') || '/'

/** What a fragment, without its `#`, asks for. */
export function addressOf(hash: string): Address {
  const [path = ''] = hash.split('?', 1)
  return { path: shownAt(path), query: new URLSearchParams(hash.slice(path.length)) }
}

/** The instant that the address names, in epoch ms; `null` for the present, `NaN` for an invalid time. */
export function atInAddress(): number | null {
  const at = new URLSearchParams(location.search).get('at')
  return at === null ? null : /^\d+$/.test(at) ? Number(at) : Date.parse(at)
}

/** Where a link goes that shows `hash` as of `instant`. */
export function hrefAt(instant: number | null, hash: string): string {
  const search = new URLSearchParams(location.search)
  if (instant === null) search.delete('at')
  else search.set('at', `${instant}`)
  return `${location.pathname}${search.size > 0 ? `?${search}` : ''}${hash}`
}

/** Goes to `href` of this document. */
function visit(href: string, isStep: boolean): void {
  if (isStep) history.replaceState(history.state, '', href)
  else history.pushState(null, '', href)
  dispatchEvent(new PopStateEvent('popstate'))
}

/** Shows this page as of `instant`; `null` shows the present. "Back" leads out of the past in one step. */
export const goTo = (instant: number | null): void =>
  visit(hrefAt(instant, location.hash), (instant === null) === (atInAddress() === null))

/** Links to another instant load nothing again. */
export function followLink(event: MouseEvent): void {
  const link = (event.target as Element).closest('a')
  if (!link || link.target || link.pathname !== location.pathname || link.search === location.search) return
  if (event.ctrlKey || event.metaKey || event.shiftKey) return
  event.preventDefault()
  visit(link.href, false)
}

const read = () => addressOf(location.hash.slice(1))

/** Where the page is; it follows links, back and forward. */
export function useAddress(): Address {
  const [address, setAddress] = useState(read)
  useLayoutEffect(() => {
    let { href } = location
    const follow = () => {
      if (href !== location.href) setAddress(read())
      href = location.href
    }
    // For as long as the page lives.
    addEventListener('hashchange', follow)
    addEventListener('popstate', follow)
    // It may have changed between what was drawn and now.
    setAddress(read())
  }, [])
  return address
}

/** `text` without its percent-encoding; as it is where that is invalid. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
