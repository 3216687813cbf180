/** Navigation within one document: back restores the scroll position, forward focuses the heading. */

interface Place {
  y: number
  /** Of the list, which scrolls in a place of its own. */
  inner: number
  /** Which of the links of this address had the focus. */
  link: { href: string; index: number; top: number } | null
}

/** Entries of the history that are remembered. */
const KEPT = 100
/** How long a list may take to come before its place is given up. */
const RESTORE_MS = 3_000
const EVERY_MS = 50

const places = new Map<number, Place>()
let current = 0
let newest = 0
let restoring: ReturnType<typeof setInterval> | undefined

const innerOf = () => document.querySelector<HTMLElement>('main .tall')
const linksOf = (href: string) =>
  [...document.querySelectorAll<HTMLAnchorElement>('main a')].filter((link) => link.getAttribute('href') === href)

/** Where in the window it is. */
const topOf = (element: Element | null | undefined) => element?.getBoundingClientRect().top ?? 0

/** The number of this entry of the history; a new one for an entry that has none. */
function entryOf(): { id: number; isNew: boolean } {
  const id = (history.state as { entry?: number } | null)?.entry
  if (typeof id === 'number' && places.has(id)) return { id, isNew: false }
  newest++
  history.replaceState({ entry: newest }, '')
  return { id: newest, isNew: true }
}

function remember(): void {
  if (restoring !== undefined) return
  const element = document.activeElement
  const href = element?.matches('main a') ? element.getAttribute('href') : null
  const before = places.get(current)?.link
  const link =
    href !== null
      ? { href, index: linksOf(href).indexOf(element as HTMLAnchorElement), top: topOf(element) }
      : before
        ? { ...before, top: topOf(linksOf(before.href)[before.index]) }
        : null
  places.set(current, { y: scrollY, inner: innerOf()?.scrollTop ?? 0, link })
  if (places.size > KEPT) places.delete(places.keys().next().value as number)
}

/** Moves to the heading, which screen readers then read. */
export function focusHeading(): void {
  const heading = document.querySelector<HTMLElement>('main h1')
  if (!heading) return
  heading.tabIndex = -1
  heading.focus({ preventScroll: true })
}

/** Scrolls and focuses as it was, as soon as what was there is drawn again. */
function restore({ y, inner, link }: Place): void {
  clearInterval(restoring)
  const until = Date.now() + RESTORE_MS
  const stop = () => {
    clearInterval(restoring)
    restoring = undefined
    for (const name of ['wheel', 'keydown', 'pointerdown']) removeEventListener(name, stop)
  }
  // Stops when the user scrolls.
  for (const name of ['wheel', 'keydown', 'pointerdown']) addEventListener(name, stop)
  let isFocused = link === null
  restoring = setInterval(() => {
    scrollTo(0, y)
    const list = innerOf()
    if (list) list.scrollTop = inner
    const target = link && linksOf(link.href)[link.index]
    if (target) {
      // Rows have come above it since.
      for (const part of [target.closest('.tall'), document.scrollingElement])
        if (part) part.scrollTop += topOf(target) - link.top
      if (!isFocused) target.focus({ preventScroll: true })
      // A part that is not shown yet cannot have it.
      isFocused = document.activeElement === target
    }
    const isPlaced = target
      ? Math.abs(topOf(target) - link.top) < 2
      : Math.abs(scrollY - y) < 2 && Math.abs((list?.scrollTop ?? 0) - inner) < 2
    if ((isFocused && isPlaced) || Date.now() > until) stop()
  }, EVERY_MS)
}

let path = ''

/** To be called after each change of the address, once the new page is drawn. */
export function arrive(to: string): void {
  const { id, isNew } = entryOf()
  current = id
  const isElsewhere = to !== path
  path = to
  const place = places.get(id)
  if (!isNew && place) {
    restore(place)
    return
  }
  clearInterval(restoring)
  restoring = undefined
  places.set(id, { y: 0, inner: 0, link: null })
  if (!isElsewhere) return
  scrollTo(0, 0)
  // A search that is being typed is not interrupted.
  if (!document.activeElement?.matches('input')) focusHeading()
}

/** Begins to remember. */
export function startNavigation(to: string): void {
  history.scrollRestoration = 'manual'
  path = to
  current = entryOf().id
  places.set(current, { y: 0, inner: 0, link: null })
  addEventListener('scroll', remember, { capture: true, passive: true })
  addEventListener('focusin', remember)
}
