/** Everything by keys: what each does, and the page that lists them. */
import type { JSX } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { addressOf, hrefOf } from './address.js'
import { hasInstants, unavailableReason } from './answers.js'
import { stepMinutes } from './instants.js'
import { PAGES, pageForPath } from './pages.js'
import { copyText } from './parts/copy.js'

const OTHERS: readonly (readonly [string, string])[] = [
  ['/', 'search for any id; Ctrl K too'],
  ['e', 'add a filter'],
  ['j k', 'next row, previous row; Enter opens it'],
  ['[ ]', 'previous, next record of the list'],
  ['c', 'copy the id of the row, or of the record'],
  ['y', 'copy a link to it'],
  ['n', 'show the new rows'],
  [', .', 'one minute back, one minute on'],
  ['p', 'pause, resume'],
  ['?', 'show these keys'],
  ['Esc', 'leave a field, close this'],
]

const titled = Object.entries(PAGES).filter(([, { key }]) => key)

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)

const rowsIn = (part: ParentNode) => [...part.querySelectorAll<HTMLAnchorElement>('tbody tr th a:first-child')]

/** Where the rows lead of the table in which a record was opened. */
let list: string[] = []
addEventListener('click', ({ target }) => {
  const table = (target as Element).closest('table')
  if (table) list = rowsIn(table).map(({ hash }) => hash)
})

/** Opens the record before or after this one in that table. */
function turn(by: number): void {
  const { hash } = location
  if (list.includes(hash)) location.hash = list[list.indexOf(hash) + by] ?? hash
}

/** The first link of the next row, or of the one before. */
function step(by: number): void {
  const links = rowsIn(document)
  const at = links.indexOf(document.activeElement as HTMLAnchorElement)
  links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus()
}

/** Copies of what has the focus, or of the record that the page is about. */
function copy(what: 'id' | 'link'): void {
  const focused = document.activeElement
  const link = focused?.matches('main a') ? (focused as HTMLAnchorElement) : null
  const id = link
    ? link.title || link.textContent
    : pageForPath(addressOf(location.hash.slice(1)).path)?.id?.(addressOf(location.hash.slice(1)))
  void copyText(what === 'link' ? (link?.href ?? location.href) : (id ?? ''))
}

/** Opens the field that adds a filter. */
function openFilters(): void {
  const folded = document.querySelector<HTMLDetailsElement>('details.filters')
  if (folded) folded.open = true
  folded?.querySelector<HTMLElement>('form select')?.focus()
}

interface Acts {
  pause(): unknown
  help(): void
  /** A key is asked for: letters are nothing but letters. */
  isOff: boolean
}

/** Of the one page that there is, as it was last drawn. */
let acts: Acts

/** Listens to the keys of the whole page. */
export function useKeys(given: Acts): void {
  acts = given
  useLayoutEffect(() => {
    let isGoing = false
    const press = (event: KeyboardEvent) => {
      const { key, target } = event
      if (acts.isOff) return
      if (key === 'k' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault()
        return document.querySelector<HTMLElement>('#search')?.focus()
      }
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (isTyping(target)) {
        if (key === 'Escape') (target as HTMLElement).blur()
        return
      }
      const goal = isGoing ? titled.find(([, page]) => page.key === key)?.[0] : undefined
      isGoing = !isGoing && key === 'g'
      if (goal !== undefined) location.hash = hrefOf(goal)
      else if (key === '?') acts.help()
      else if (key === 'p') acts.pause()
      else if (key === ',' && hasInstants()) stepMinutes(-1)
      else if (key === '.' && hasInstants()) stepMinutes(1)
      else if (key === 'j') step(1)
      else if (key === 'k') step(-1)
      else if (key === ']') turn(1)
      else if (key === '[') turn(-1)
      else if (key === '/') document.querySelector<HTMLElement>('#search')?.focus()
      else if (key === 'e') openFilters()
      else if (key === 'n') document.querySelector<HTMLElement>('#news')?.click()
      else if (key === 'c') copy('id')
      else if (key === 'y') copy('link')
      else return
      event.preventDefault()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}

/** The dialog has the focus itself: it begins at its first line, not at its button. */
function open(dialog: HTMLDialogElement | null): void {
  dialog?.showModal()
  dialog?.focus()
  dialog?.scrollTo(0, 0)
}

export function KeyList({ onClose }: { onClose: () => void }): JSX.Element {
  return (
    <dialog ref={open} onClose={onClose} aria-label="Keys" tabIndex={-1}>
      <h2>Keys</h2>
      <dl class="keys">
        {OTHERS.filter(([keys]) => keys !== ', .' || hasInstants()).map(([keys, caption]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{caption}</dd>
          </div>
        ))}
        {titled.map(
          ([path, { key, title }]) =>
            !unavailableReason(path) && (
              <div key={path}>
                <dt>
                  <kbd>g</kbd> <kbd>{key}</kbd>
                </dt>
                <dd>{title}</dd>
              </div>
            ),
        )}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  )
}
