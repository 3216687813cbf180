/** One field for any id: the tab's recent records, the pages, and what the router finds. */
import type { JSX } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { SearchResult } from '../../internal/views/search.js'
import { addressOf, hrefOf, pathWithQuery } from './address.js'
import { offers, onReset, unavailableReason } from './answers.js'
import { useAnswer } from './hooks.js'
import { PAGES, pageForPath } from './pages.js'
import { Text } from './parts/text.js'
import { spacedName } from './words.js'

interface Hit {
  kind: string
  name: string
  href: string
}

const RECENT = 12
const recent = new Map<string, Hit>()

/** Keeps a record that was opened, the latest first, for as long as the tab lives. */
export function remember(hit: Hit): void {
  recent.delete(hit.href)
  recent.set(hit.href, hit)
  if (recent.size > RECENT) recent.delete(recent.keys().next().value as string)
}

onReset((isOther) => isOther && recent.clear())

const ROUTE = '/search'
/** Until the typing rests so long, nothing is requested. */
const REST_MS = 150

/** What is known without a request: opened records and pages. */
function knownOf(text: string): readonly Hit[] {
  const wanted = text.toLowerCase()
  const known = [...recent.values()].reverse().filter(({ name }) => name.toLowerCase().includes(wanted))
  if (text === '') return known
  const pages = Object.entries(PAGES)
    .filter(([path, { title }]) => title?.toLowerCase().startsWith(wanted) && !unavailableReason(path))
    .map(([path, { title = '' }]) => ({ kind: 'page', name: title, href: hrefOf(path) }))
  return [...known, ...pages]
}

/** `text` once it has not changed for a while. */
function useRested(text: string): string {
  const [rested, setRested] = useState(text)
  useLayoutEffect(() => {
    const timer = setTimeout(() => setRested(text), REST_MS)
    return () => clearTimeout(timer)
  }, [text])
  return rested
}

/** Everything that `text` may name, and what to say of the search itself. */
function useHits(text: string): { hits: readonly Hit[]; isLoading: boolean; note: string } {
  const rested = useRested(text)
  const q = rested === text && text !== '' && offers(ROUTE) ? text : null
  const { value, problem } = useAnswer<SearchResult>(q === null ? null : pathWithQuery(ROUTE, { q }))
  const known = knownOf(text)
  const found = (value?.hits ?? [])
    .map(({ kind, id, route }) => ({ kind: spacedName(kind), name: id, href: hrefOf(route) }))
    .filter(({ href }) => pageForPath(addressOf(href.slice(1)).path) && !known.some((one) => one.href === href))
  const hits = [...known, ...found]
  const isLoading = text !== '' && offers(ROUTE) && !value && !problem
  const cut = value?.cut.length ? ` Not searched to the end: ${value.cut.map(spacedName).join(', ')}.` : ''
  const none = hits.length === 0 && value ? 'Nothing has this id.' : ''
  return { hits, isLoading, note: problem ? `No answer: ${problem.title}` : isLoading ? 'searching …' : none + cut }
}

export function Search(): JSX.Element {
  const [text, setText] = useState('')
  const [isOpen, setOpen] = useState(false)
  const root = useRef<HTMLDivElement>(null)
  /** Enter was pressed before the answer came: its first hit is opened. */
  const [isAwaited, setAwaited] = useState(false)
  const { hits, isLoading, note } = useHits(isOpen ? text.trim() : '')
  const links = () => [...(root.current?.querySelectorAll<HTMLElement>('input, a') ?? [])]
  const close = () => {
    setOpen(false)
    setAwaited(false)
    setText('')
    ;(document.activeElement as HTMLElement | null)?.blur()
  }
  const go = ({ href }: Hit) => {
    location.hash = href
    close()
  }
  useLayoutEffect(() => {
    if (isAwaited && hits[0]) go(hits[0])
  })
  const press = (event: KeyboardEvent) => {
    const { key } = event
    const by = key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : 0
    if (key === 'Escape') close()
    else if (key === 'Enter' && event.target instanceof HTMLInputElement) {
      if (hits[0]) go(hits[0])
      else setAwaited(isLoading)
    } else if (by !== 0) {
      const all = links()
      all[all.indexOf(document.activeElement as HTMLElement) + by]?.focus()
    } else return
    event.preventDefault()
    event.stopPropagation()
  }
  const leave = ({ relatedTarget }: FocusEvent) => {
    if (!root.current?.contains(relatedTarget as Node | null)) setOpen(false)
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it hears the keys of the field and of the links in it
    <div class="search" ref={root} onKeyDown={press} onFocusOut={leave}>
      <input
        id="search"
        type="search"
        aria-label="Search for any id"
        placeholder="any id, user, command …  /"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onFocus={() => setOpen(true)}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {isOpen && (hits.length > 0 || note !== '') && (
        <ul class="hits">
          {hits.map(({ kind, name, href }) => (
            <li key={href}>
              <a href={href} onClick={close}>
                <span class="dim">{kind}</span> <Text value={name} />
              </a>
            </li>
          ))}
          {note && (
            <li class="dim" role="status">
              {note}
            </li>
          )}
        </ul>
      )}
    </div>
  )
}
