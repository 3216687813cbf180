/** One field for any id: the tab's recent records, the pages, and where the id can be looked up. */
import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { hrefOf } from './address.js'
import { unavailableReason } from './answers.js'
import { PAGES } from './pages.js'
import { Text } from './parts/text.js'

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

export const forgetRecent = (): void => recent.clear()

const at = encodeURIComponent

/** Where an id can be looked up, by what it may be the id of. */
const LOOKUPS: readonly (readonly [kind: string, list: string, href: (id: string) => string])[] = [
  ['user', '/users', (id) => hrefOf(`/users/${at(id)}/summary`)],
  ['commands', '/delivery/commands', (command_id) => hrefOf('/delivery/commands', { command_id })],
  ['connection', '/connections', (id) => hrefOf(`/connections/${at(id)}`)],
  ['client', '/connections', (client_id) => hrefOf('/connections', { client_id })],
  ['call', '/rpc/pending', (id) => hrefOf(`/rpc/pending/${at(id)}`)],
  ['context', '/contexts', (id) => hrefOf(`/contexts/${at(id)}`)],
  ['window', '/browser-windows', (id) => hrefOf(`/browser-windows/${at(id)}`)],
  ['session', '/sessions', (id) => hrefOf(`/sessions/${at(id)}`)],
  ['site', '/sites', (id) => hrefOf(`/sites/${at(id)}`)],
  ['stream', '/history/streams', (stream) => hrefOf('/history/messages', { stream })],
]

function hitsOf(text: string): readonly Hit[] {
  const wanted = text.toLowerCase()
  const known = [...recent.values()].reverse().filter(({ name }) => name.toLowerCase().includes(wanted))
  if (text === '') return known
  const pages = Object.entries(PAGES)
    .filter(([path, { title }]) => title?.toLowerCase().startsWith(wanted) && !unavailableReason(path))
    .map(([path, { title = '' }]) => ({ kind: 'page', name: title, href: hrefOf(path) }))
  const lookups = LOOKUPS.filter(([, list]) => !unavailableReason(list)).map(([kind, , href]) => ({
    kind,
    name: text,
    href: href(text),
  }))
  return [...known, ...pages, ...lookups]
}

export function Search(): JSX.Element {
  const [text, setText] = useState('')
  const [isOpen, setOpen] = useState(false)
  const root = useRef<HTMLDivElement>(null)
  const hits = isOpen ? hitsOf(text.trim()) : []
  const links = () => [...(root.current?.querySelectorAll<HTMLElement>('input, a') ?? [])]
  const close = () => {
    setOpen(false)
    setText('')
    ;(document.activeElement as HTMLElement | null)?.blur()
  }
  const press = (event: KeyboardEvent) => {
    const { key } = event
    const by = key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : 0
    if (key === 'Escape') close()
    else if (key === 'Enter' && event.target instanceof HTMLInputElement) {
      const [first] = hits
      if (!first) return
      location.hash = first.href
      close()
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
      {hits.length > 0 && (
        <ul class="hits">
          {hits.map(({ kind, name, href }) => (
            <li key={href}>
              <a href={href} onClick={close}>
                <span class="dim">{kind}</span> <Text value={name} />
              </a>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
