/** Everything by keys: what each does, and the page that lists them. */
import type { JSX } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { hrefOf } from './address.js'
import { unavailableReason } from './answers.js'
import { PAGES } from './pages.js'

const OTHERS: readonly (readonly [string, string])[] = [
  ['/', 'to the first filter'],
  ['j k', 'to the next row, to the one before; Enter opens it'],
  ['p', 'pause, and go on'],
  ['?', 'these keys'],
  ['Esc', 'out of a field, and out of here'],
]

const titled = Object.entries(PAGES).filter(([, { key }]) => key)

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)

/** The first link of the next row, or of the one before. */
function step(by: number): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>('tbody tr th a')]
  const at = links.indexOf(document.activeElement as HTMLAnchorElement)
  links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus()
}

interface Acts {
  pause(): void
  help(): void
}

/** Of the one page that there is, as it was last drawn. */
let acts: Acts

/** Listens to the keys of the whole page. */
export function useKeys(given: Acts): void {
  acts = given
  useLayoutEffect(() => {
    let isGoing = false
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      const { key, target } = event
      if (isTyping(target)) {
        if (key === 'Escape') (target as HTMLElement).blur()
        return
      }
      const goal = isGoing ? titled.find(([, page]) => page.key === key)?.[0] : undefined
      isGoing = !isGoing && key === 'g'
      if (goal !== undefined) location.hash = hrefOf(goal)
      else if (key === '?') acts.help()
      else if (key === 'p') acts.pause()
      else if (key === 'j' || key === 'k') step(key === 'j' ? 1 : -1)
      else if (key === '/') document.querySelector<HTMLElement>('.filters input, .filters select')?.focus()
      else return
      event.preventDefault()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}

const open = (dialog: HTMLDialogElement | null) => dialog?.showModal()

export function KeyList({ onClose }: { onClose: () => void }): JSX.Element {
  return (
    <dialog ref={open} onClose={onClose} aria-label="Keys">
      <h2>Keys</h2>
      <dl class="keys">
        {OTHERS.map(([keys, said]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{said}</dd>
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
